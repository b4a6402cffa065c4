"""Built-in networks by name: what is known about each of them, and its file.

The networks have random weights and the true shapes, so they cost what the trained ones cost. They are
built when they are first used (with `spox`, from the extra "zoo") and kept in the cache of the user.
Batch normalisations stay operators of their own, as in a file exported without folding.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ...executor.engines.cache import default_cache
from ...formulations.errors import InvalidModelError
from ...formulations.validation import meant
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
    return meant(name, known, listed_by="`gapless list networks` lists them")


def build(name: str) -> bytes:
    """Build a network: a serialised, self-contained ONNX model; the same bytes every time.

    Raises InvalidModelError: there is no built-in network of this name, it is too large for one file, or spox
    is not installed.
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

    Raises InvalidModelError: as for `build`.
    Raises StoreError: the cache cannot be written.
    """
    cache, key = default_cache(), digest_of(name)
    return cache.path(key, ".onnx") or cache.put(key, ".onnx", build(name))


def _construct(entry: ZooEntry) -> tuple[Blocks, Outputs]:
    try:
        from .blocks import Blocks

        builder = _builders()[entry.name]
    except ModuleNotFoundError as error:
        raise InvalidModelError(
            f"the built-in network {entry.name!r} cannot be built, because {error.name} is not installed; "
            "install it with: pip install 'gapless[zoo]'"
        ) from error
    net = Blocks(entry.name, entry.inputs)
    return net, builder(net, *net.inputs.values())


def _builders() -> Mapping[str, Callable[..., Outputs]]:
    """Return who builds each network; spox is loaded."""
    from . import branches, classics, efficientnet, faces, inception, mobilenet, transformers, yolo

    return {
        "alexnet": classics.alexnet,
        "arcface-mobilenet": faces.mobile_face_net,
        "arcface-resnet50": faces.arcface_resnet50,
        "bert": partial(transformers.bert, size=transformers.BASE),
        "bert-large": partial(transformers.bert, size=transformers.LARGE),
        "bert-small": partial(transformers.bert, size=transformers.SHORT),
        "deit-small": partial(transformers.vit, size=transformers.SMALL),
        "deit-tiny": partial(transformers.vit, size=transformers.TINY),
        "efficientdet-lite0": efficientnet.efficientdet_lite0,
        "efficientnet-lite1": partial(efficientnet.efficientnet, width=1.0, depth=1.1),
        "efficientnet-lite2": partial(efficientnet.efficientnet, width=1.1, depth=1.2),
        "efficientnet-lite3": partial(efficientnet.efficientnet, width=1.2, depth=1.4),
        "fsrnet": faces.fsrnet,
        "googlenet": classics.googlenet,
        "inceptionv3": inception.inception_v3,
        "inceptionv4": inception.inception_v4,
        "lstm-attention": branches.lstm_attention,
        "mobilenetv1": mobilenet.mobilenet_v1,
        "mobilenetv2": mobilenet.mobilenet_v2,
        "mobilenetv3-large": mobilenet.mobilenet_v3_large,
        "nasnet-large": partial(inception.nasnet, cells=6, filters=168, stem=96),
        "nasnet-single": partial(inception.nasnet, cells=1, filters=44, stem=32),
        "resnet18": partial(classics.resnet, block=classics.basic, repeats=(2, 2, 2, 2)),
        "resnet34": partial(classics.resnet, block=classics.basic, repeats=(3, 4, 6, 3)),
        "resnet50": partial(classics.resnet, block=classics.bottleneck, repeats=(3, 4, 6, 3)),
        "retinaface": faces.retinaface,
        "squeezenet": classics.squeezenet,
        "two-tower": branches.two_tower,
        "vgg16": classics.vgg16,
        "vit": partial(transformers.vit, size=transformers.BASE),
        "vit-huge": partial(transformers.vit, size=transformers.HUGE, patch=14),
        "vit-large": partial(transformers.vit, size=transformers.LARGE),
        "yolov2": yolo.yolo_v2,
        "yolov4": yolo.yolo_v4,
    }


def digest_of(name: str) -> str:
    """Return a digest of what is built and of the sources that build it: new code makes a new file.

    Raises InvalidModelError: there is no built-in network of this name.
    """
    digest = hashlib.sha256(f"{name} {zoo_entry(name).inputs}".encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()
