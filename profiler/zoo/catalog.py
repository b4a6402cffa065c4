"""Built-in networks by name: what is known about each of them, and its file.

The networks have random weights and the true shapes, so they cost what the trained ones cost. They are
built when they are first used (with `spox`, from the extra "zoo") and kept in the cache of the user.
Batch normalisations stay operators of their own, as in a file exported without folding.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from ...executor.engines.cache import default_cache
from ...formulations.errors import InvalidModelError
from ...formulations.nearness import meant
from .entries import ENTRIES, ZooEntry

if TYPE_CHECKING:
    from .blocks import Blocks, Outputs


def zoo_names() -> tuple[str, ...]:
    """Return the names of the built-in networks that are built as model files."""
    return tuple(name for name, entry in ENTRIES.items() if not entry.in_parts)


def names_in_parts() -> tuple[str, ...]:
    """Return the names of the built-in networks of which there are tables only."""
    return tuple(name for name, entry in ENTRIES.items() if entry.in_parts)


def zoo_entry(name: str) -> ZooEntry:
    """Return what is known about a built-in network."""
    if name not in ENTRIES:
        raise InvalidModelError(f"no built-in network is called {name[:100]!r}; {zoo_hint(name)}")
    return ENTRIES[name]


def zoo_hint(name: str, *, also: Iterable[str] = ()) -> str:
    """Return what someone who typed `name` may have meant, in words: a built-in network, or one of `also`."""
    known = (*ENTRIES, *also)
    return meant(name, known, listed_by="`gapless networks` lists them")


def build(name: str) -> bytes:
    """Build a network: a serialised, self-contained ONNX model; the same bytes every time.

    Raises
    ------
    InvalidModelError
        There is no built-in network of this name, it is too large for one file, or spox is not installed.
    """
    entry = zoo_entry(name)
    if entry.in_parts:
        raise InvalidModelError(
            f"the built-in network {name!r} is a table without weights: its {entry.parameters / 1e6:.0f} M "
            "parameters are too many for one model file here; plan it over devices, e.g. "
            f"`gapless plan {name} --platform epipe-case-1`"
        )
    net, outputs = _construct(entry)
    return net.serialise(outputs)


def outline(name: str) -> bytes:
    """Build a network without its weights, in milliseconds: they are inputs of the graph.

    Raises InvalidModelError: there is no built-in network of this name, or spox is not installed.
    """
    net, outputs = _construct(zoo_entry(name))
    data: bytes = net.outline(outputs).SerializeToString(deterministic=True)
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
    cache, key = default_cache(), digest_of(name)
    return cache.path(key, ".onnx") or cache.put(key, ".onnx", build(name))


def _construct(entry: ZooEntry) -> tuple[Blocks, Outputs]:
    module, _, function = entry.builder.partition(":")
    try:
        builder = getattr(import_module(f".{module}", __package__), function)
        blocks = import_module(".blocks", __package__)
    except ModuleNotFoundError as error:
        raise InvalidModelError(
            f"the built-in network {entry.name!r} cannot be built, because {error.name} is not installed; "
            "install it with: pip install 'gapless[zoo]'"
        ) from error
    net = blocks.Blocks(entry.name, entry.inputs)
    return net, builder(net, *net.inputs.values())


def digest_of(name: str) -> str:
    """Return a digest of what is built and of the sources that build it: new code makes a new file.

    Raises InvalidModelError: there is no built-in network of this name.
    """
    entry = zoo_entry(name)
    module, _, function = entry.builder.partition(":")
    digest = hashlib.sha256(f"{entry.name} {function} {entry.inputs}".encode())
    for source in ("blocks", "weights", module):
        digest.update(files(__package__).joinpath(f"{source}.py").read_bytes())
    return digest.hexdigest()
