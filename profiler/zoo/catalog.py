"""Built-in networks by name: what is known about each of them, and its file.

The networks have random weights and the true shapes, so they cost what the trained ones cost. They are
built when they are first used (with `spox`, from the extra "zoo") and kept in the cache of the user.
Batch normalisations stay operators of their own, as in a file exported without folding.
"""

from __future__ import annotations

import difflib
import hashlib
from dataclasses import dataclass
from importlib import import_module
from importlib.resources import files
from pathlib import Path

from ...executor.engines.cache import default_cache
from ...executor.model import TensorSpec
from ...formulations.errors import InvalidModelError

_IMAGE = (TensorSpec(name="image", shape=(1, 3, 224, 224)),)
_TORCHVISION = "torchvision, weights IMAGENET1K_V1 (pytorch.org/vision/stable/models.html)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooEntry:
    """One built-in network.

    Attributes
    ----------
    name
        Its name.
    builder
        Who builds it, "module:function" in this folder.
    parameters
        Number of trained weights in the literature; running means and variances are not counted.
    macs
        Multiplications with addition of one run in the literature, as far as it is printed there.
    source
        Where the two numbers stand.
    inputs
        Its inputs; shapes are fixed, one image at a time.
    """

    name: str
    builder: str
    parameters: int
    macs: int
    source: str = _TORCHVISION
    inputs: tuple[TensorSpec, ...] = _IMAGE


_ENTRIES = {
    entry.name: entry
    for entry in (
        ZooEntry(name="alexnet", builder="alexnet:alexnet", parameters=61_100_840, macs=710_000_000),
        ZooEntry(name="googlenet", builder="googlenet:googlenet", parameters=6_624_904, macs=1_500_000_000),
        ZooEntry(
            name="mobilenetv1",
            builder="mobilenet:mobilenet_v1",
            parameters=4_200_000,
            macs=569_000_000,
            source="Howard et al. 2017, MobileNets (arXiv 1704.04861), table 4",
        ),
        ZooEntry(
            name="mobilenetv2", builder="mobilenet:mobilenet_v2", parameters=3_504_872, macs=300_000_000
        ),
        ZooEntry(name="resnet18", builder="resnet:resnet18", parameters=11_689_512, macs=1_810_000_000),
        ZooEntry(name="resnet50", builder="resnet:resnet50", parameters=25_557_032, macs=4_090_000_000),
        ZooEntry(name="squeezenet", builder="squeezenet:squeezenet", parameters=1_235_496, macs=350_000_000),
    )
}


def zoo_names() -> tuple[str, ...]:
    """Return the names of the built-in networks."""
    return tuple(_ENTRIES)


def zoo_entry(name: str) -> ZooEntry:
    """Return what is known about a built-in network.

    Raises
    ------
    InvalidModelError
        There is no built-in network of this name.
    """
    if name not in _ENTRIES:
        raise InvalidModelError(f"no built-in network is called {name[:100]!r}; {zoo_hint(name)}")
    return _ENTRIES[name]


def zoo_hint(name: str) -> str:
    """Return which built-in networks someone who typed `name` may have meant, in words."""
    near = difflib.get_close_matches(name[:100].lower(), _ENTRIES, n=2)
    return f"did you mean {' or '.join(near)}?" if near else f"choose one of {', '.join(_ENTRIES)}"


def build(name: str) -> bytes:
    """Build a network: a serialised, self-contained ONNX model; the same bytes every time.

    Raises
    ------
    InvalidModelError
        There is no built-in network of this name, or spox is not installed.
    """
    module, _, function = zoo_entry(name).builder.partition(":")
    try:
        builder = getattr(import_module(f".{module}", __package__), function)
    except ModuleNotFoundError as error:
        raise InvalidModelError(
            f"the built-in network {name!r} cannot be built, because {error.name} is not installed; "
            "install it with: pip install 'gapless[zoo]'"
        ) from error
    data: bytes = builder()
    return data


def zoo_path(name: str) -> Path:
    """Return the ONNX file of a network, in the cache of the user; built on first use.

    Raises
    ------
    InvalidModelError
        As for `build`.
    StoreError
        The cache cannot be written.
    """
    cache, key = default_cache(), _key(zoo_entry(name))
    return cache.path(key, ".onnx") or cache.put(key, ".onnx", build(name))


def _key(entry: ZooEntry) -> str:
    """Return a digest of the name and of the sources that build it: new code makes a new file."""
    module, _, function = entry.builder.partition(":")
    digest = hashlib.sha256(f"{entry.name} {function}".encode())
    for source in ("blocks", module):
        digest.update(files(__package__).joinpath(f"{source}.py").read_bytes())
    return digest.hexdigest()
