"""Where executable models come from: ONNX files, built-in networks, Python functions."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, Unpack

from ..executor.graph.choices import Granularity
from ..executor.model import Model, reordered
from ..formulations.errors import InvalidInputError, InvalidModelError, OpenShapesError
from ..formulations.network import ModelRef, Network
from ..formulations.plugins import require_trusted, trust
from ..formulations.validation import shown
from ..profiler.applications.catalog import application_named, applications
from ..question.subjects import Opening

if TYPE_CHECKING:
    from ..executor.callable_file import CallableSource
    from ..executor.callable_layers import ModelStep
    from ..executor.graph.onnx_model import OnnxModel, PieceFinder
    from ..executor.graph.opening import Opener, OpeningLimits
    from ..executor.graph.shapes import Shapes as FixedShapes

Shapes = Mapping[str, Sequence[int]]

ZOO_PREFIX = "zoo:"

_NAMED = re.compile(r"([A-Za-z0-9_.#*-]{1,60}(?::[1-9][0-9]{0,8}(?:\*[0-9]+)?)?)=(.+)", re.DOTALL)
"""A name, maybe with a version for servers, and what it names."""
_CALLABLE = re.compile(r"(.+\.py|[A-Za-z_]\w*(\.[A-Za-z_]\w*)+):[A-Za-z_]\w*", re.DOTALL)


def open_model(
    locator: str | Path,
    *,
    shapes: Shapes | None = None,
    granularity: str | Granularity = Granularity.AUTO,
    materialize: bool = False,
    simplify: str = "auto",
    limits: OpeningLimits | None = None,
) -> Model:
    """Open one model that can be planned, profiled and run.

    ONNX files are checked and simplified in a child process with limits of time and memory.

    Parameters
    ----------
    locator
        The path of an ONNX file; the name of a built-in network or application (`gapless list networks` lists
        them); or "path.py:NAME" for a `CallableModel`, "package.module:NAME" where an installed package
        holds it. "NAME=..." before it gives it a name of your own.
    shapes
        Fixed shapes of inputs with dynamic dimensions, by name.
    granularity
        How operators are grouped into layers: "operator", "layer" (what a runtime fuses), "block", "piece"
        (a chain whose pieces cost little more when devices share them), or "auto": layers, or blocks for a
        network of very many tiny layers.
    materialize
        Copy weights that are links to other files (as a download cache has them) before reading.
    simplify
        "auto": as far as numbers stay those of the file, which is checked once, on random inputs; what had
        to be left out is among the warnings of the model. "off": its operators are those of the file.
    limits
        What opening an ONNX file may take; None: `OpeningLimits.usual`, far above what honest models need.

    Raises
    ------
    InvalidModelError
        There is no such model, or it cannot be used; the message says why and what to do.

    Examples
    --------
    >>> import gapless
    >>> model = gapless.open_model("squeezenet")
    >>> model.network.name
    'squeezenet'
    """
    from ..executor.graph.opening import Opener

    opening = _opening(
        OpeningWords(shapes=shapes, granularity=granularity, materialize=materialize, simplify=simplify)
    )
    with Opener(limits) as opener:
        return _trusted(_opened(locator, opening.shape or {}, _How(opener, opening)))


def divided_by(model: OnnxModel, pieces: Sequence[int]) -> OnnxModel:
    """Open an ONNX model once more, divided into other pieces: by node of `spatial()` its number, or -1."""
    from ..executor.graph.opening import Opener

    (ref,) = model.network.models
    where = f"{model.network.name}={ref.locator}"
    words = OpeningWords(granularity=Granularity.PIECE, materialize=model.materialize, simplify=ref.simplify)
    with Opener() as opener:
        found = _opened(where, dict(ref.shapes), _How(opener, _opening(words), lambda _: pieces))
    assert isinstance(found, type(model))
    return found


class OpeningWords(TypedDict, total=False):
    """How models are opened, as for `open_model`."""

    shapes: Shapes | None
    granularity: str | Granularity
    materialize: bool
    simplify: str
    limits: OpeningLimits | None


class _How(NamedTuple):
    """How models are opened, and by which process; pieces may be given."""

    opener: Opener
    opening: Opening
    pieces: PieceFinder | None = None


def _opened(locator: str | Path, shapes: Shapes, how: _How) -> Model:
    name, where = split_locator(locator)
    fixed = {key: tuple(shape) for key, shape in shapes.items()}
    if not os.path.exists(where):
        if _CALLABLE.fullmatch(where):
            return _open_callable(where, name, fixed, how)
        if application := application_named(where):
            return _open_callable(application.locator, name or where, fixed, how)
    return _open_onnx(where, name, fixed, how)


def _open_onnx(where: str, name: str | None, fixed: FixedShapes, how: _How) -> Model:
    from ..executor.graph.onnx_model import load_onnx
    from .pieces import labels_of

    zoo = None if os.path.exists(where) else where.removeprefix(ZOO_PREFIX)
    return load_onnx(
        where if zoo is None else _zoo_path(zoo),
        shapes=fixed,
        granularity=how.opening.granularity,
        name=name or zoo,
        materialize=how.opening.materialize,
        simplification=how.opening.simplify,
        locator=None if zoo is None else ZOO_PREFIX + zoo,
        opener=how.opener,
        pieces=how.pieces or labels_of,
    )


def open_models(locators: Sequence[str | Path], **how: Unpack[OpeningWords]) -> Model:
    """Open one or several models; several run one after the other for each request, as one network.

    Parameters
    ----------
    locators
        As for `open_model`.
    how
        As for `open_model`: shapes, granularity, materialize, simplify, limits; the shape "MODEL/INPUT" names
        an input of one of several models.

    Raises
    ------
    InvalidModelError
        As for `open_model`; or a shape is for no input of no model.
    """
    from ..executor.joined import join

    return join(open_each(locators, **how))


def open_each(locators: Sequence[str | Path], **how: Unpack[OpeningWords]) -> list[Model]:
    """Open models, each by itself; parameters and errors as for `open_models`."""
    return open_all(locators, _opening(how), how.get("limits"))


def _opening(words: OpeningWords) -> Opening:
    """Return how Python says that models are opened; raises InvalidInputError."""
    called = {"shapes": "shape"}
    said: dict[str, Any] = {
        called.get(name, name): value for name, value in words.items() if name != "limits"
    }
    return Opening(**said)


def open_all(
    locators: Sequence[str | Path], opening: Opening, limits: OpeningLimits | None = None
) -> list[Model]:
    """Open models, each by itself; errors as for `open_models`."""
    from ..executor.graph.opening import Opener

    if not locators:
        raise InvalidModelError("no model is given: name an ONNX file, a built-in network, or path.py:NAME")
    given = dict(opening.shape or {})
    known = [(locator, _name_of(locator)) for locator in locators]
    prefixes = tuple(f"{name}/" for _, name in known)
    models: list[Model] = []
    open_shapes: list[str] = []
    with Opener(limits) as opener:
        how = _How(opener, opening)
        for locator, name in known:
            own = {key: shape for key, shape in given.items() if not key.startswith(prefixes)}
            own |= {
                key.removeprefix(f"{name}/"): shape
                for key, shape in given.items()
                if key.startswith(f"{name}/")
            }
            try:
                models.append(_trusted(_opened(locator, own, how)))
            except OpenShapesError as error:
                if len(known) == 1:
                    raise
                # Those of the other models are asked for at once, not one error after the other.
                option = f"--shape {shlex.quote(name)}/"
                open_shapes += [f"{name}: {one.replace('--shape ', option)}" for one in error.problems]
    if open_shapes:
        raise OpenShapesError("the shapes of the inputs are not settled:", open_shapes)
    return models


def _trusted(model: Model) -> Model:
    """Return a model that the user named; problems that are made of it may name it again."""
    trust(*(ref.locator for ref in model.network.models))
    return model


def is_code(locator: str) -> bool:
    """Return whether opening what a locator names runs Python code that is not part of gapless."""
    where = split_locator(locator)[1]
    return (
        not os.path.exists(where)
        and _CALLABLE.fullmatch(where) is not None
        and where not in {application.locator for application in applications()}
    )


def in_batches(
    locators: Sequence[str | Path], shapes: Shapes, sizes: Sequence[int]
) -> tuple[list[str], dict[str, tuple[int, ...]]]:
    """Return the locators and shapes of models in batches of several sizes, each a network of its own.

    `locators`, `shapes`: as for `open_each`; a model without a fixed batch has a shape for each input, whose
    first number is 1. `sizes`: inferences in a batch; those of more than one are networks called like
    "net*4".
    """
    if not sizes or min(sizes) < 1:
        raise InvalidInputError(f"sizes of batches are {sizes}, must be whole numbers from 1, e.g. 1,2,4")
    places: list[str] = []
    found: dict[str, tuple[int, ...]] = {}
    for locator in locators:
        name, where = _name_of(locator), split_locator(locator)[1]
        own = {key.removeprefix(f"{name}/"): s for key, s in shapes.items() if "/" not in key}
        own |= {key.removeprefix(f"{name}/"): s for key, s in shapes.items() if key.startswith(f"{name}/")}
        if not own or any(shape[0] != 1 for shape in own.values()):
            raise InvalidInputError(
                f"batches of {name!r}: its file must leave the first dimension of its inputs open; give "
                "their shapes for one inference, e.g. --shape x=1,3,224,224"
            )
        for size in dict.fromkeys(sizes):
            batch = name if size == 1 else f"{name}*{size}"
            places.append(f"{batch}={where}")
            found |= {f"{batch}/{key}": (size, *shape[1:]) for key, shape in own.items()}
    return places, found


def models_of(
    network: Network, *, at: Mapping[str, str | Path] | None = None, pieces: Sequence[int] | None = None
) -> Model:
    """Open the models that a network was read from, for running a plan of it.

    `network`: with `models` filled in, as `gapless profile` writes it. `at`: where models lie now, by
    locator: for problems that come from another machine. `pieces`: of a model that is divided into pieces,
    which node belongs to which; None: as they are usually found.
    """
    from ..executor.graph.opening import Opener
    from ..executor.joined import join

    if not network.models:
        raise InvalidModelError(
            f"network {network.name!r} is a table without a model, so a plan for it cannot be run here; "
            "use --engine simulated, or profile a model first (`gapless profile model.onnx`)"
        )
    names = [network.name] if len(network.models) == 1 else _joined_names(network)
    with Opener() as opener:
        opened = [
            _reopen(ref, name, (at or {}).get(ref.locator, ref.locator), opener, pieces)
            for ref, name in zip(network.models, names, strict=True)
        ]
    return reordered(join(opened, name=network.name) if len(opened) > 1 else opened[0], network.order)


def _reopen(
    ref: ModelRef, name: str, where: str | Path, opener: Opener, pieces: Sequence[int] | None
) -> Model:
    if is_code(str(where)):
        require_trusted(str(where), f"the model of network {name!r}")
    # Links are followed: the digest decides whether it is the right file.
    opening = _opening(OpeningWords(granularity=ref.granularity, materialize=True, simplify=ref.simplify))
    how = _How(opener, opening, None if pieces is None else (lambda _: pieces))
    model = _opened(f"{name}={where}", dict(ref.shapes), how)
    (found,) = model.network.models
    if found.digest != ref.digest:
        raise InvalidModelError(
            f"{where} is not the model that was profiled: its digest is {found.digest[:12]}, "
            f"the problem says {ref.digest[:12]}; profile it again, or restore the file"
        )
    return model


def _joined_names(network: Network) -> list[str]:
    """Return the names of the joined models, in order: what stands before the first "/" of a layer."""
    return list(dict.fromkeys(layer.name.partition("/")[0] for layer in network.layers))


def _open_callable(where: str, name: str | None, shapes: Shapes, how: _How) -> Model:
    from ..executor.chained import load_pipeline

    if shapes:
        raise InvalidInputError(f"{where} has fixed shapes in its TensorSpecs; --shape is for ONNX files")

    def open_step(step: ModelStep, source: CallableSource, fixed: FixedShapes) -> Model:
        file = step.file(source.path.parent)
        found = f"{ZOO_PREFIX}{step.model}" if file is None else str(file)
        return _open_onnx(found, step.name, fixed, how)

    opening = how.opening
    return load_pipeline(
        where, open_step, name=name, granularity=str(opening.granularity), simplify=str(opening.simplify)
    )


def split_locator(locator: str | Path) -> tuple[str | None, str]:
    """Return the name that stands before a locator as "NAME=", or None, and the locator without it."""
    named = None if os.path.exists(locator) else _NAMED.fullmatch(str(locator))
    return (named[1], named[2]) if named else (None, str(locator))


def parse_places(texts: Sequence[str] | None) -> dict[str, str]:
    """Return {old place: new place} of models from texts such as "old.onnx=new.onnx"."""
    places: dict[str, str] = {}
    for item in texts or ():
        old, sign, new = item.partition("=")
        if not sign or not new:
            raise InvalidInputError(f"--at {item!r}: expected OLD=NEW, the model's old and new place")
        if old in places:
            raise InvalidInputError(f"--at {item!r}: {old!r} is given twice; give it once")
        places[old] = new
    return places


def _name_of(locator: str | Path) -> str:
    name, _ = split_locator(locator)
    if name is not None:
        return name
    text = str(locator).removeprefix(ZOO_PREFIX)
    return text if not os.path.exists(locator) else Path(text).stem


def _zoo_path(name: str) -> Path:
    from ..profiler.platforms.catalog import is_shipped_name
    from ..profiler.zoo.catalog import names_in_parts, zoo_hint, zoo_names, zoo_path

    if name in (*zoo_names(), *names_in_parts()):  # of those in parts it says that there is no file
        return zoo_path(name)
    if is_shipped_name(name):
        raise InvalidModelError(
            f"{name!r} is a shipped problem, a table without a model: `gapless plan {name}` plans it, "
            f"`gapless tune {name} --engine simulated` tunes it on a simulated device"
        )
    hint = zoo_hint(name, also=[application.name for application in applications()])
    if "=" in name:
        hint = (
            "a name before '=' has at most 60 letters, digits and . _ # * -, and may end with a version from "
            "1 on (ocr:2=ocr.onnx)"
        )
    raise InvalidModelError(f"{shown(name)} is neither a file nor a built-in network; {hint}")


def opening_notes(models: Iterable[Model], *, divided: bool = False) -> list[str]:
    """Return what a user should know of how models were simplified, and if wanted `divided` into layers."""
    return [f"{name}: {text}" for model in models for name, text in _notes(model, divided=divided)]


def _notes(model: Model, *, divided: bool) -> Iterator[tuple[str, str]]:
    from ..executor.chained import ChainedModel
    from ..executor.graph.onnx_model import OnnxModel
    from ..executor.joined import JoinedModel

    if isinstance(model, OnnxModel):
        texts = (*model.rewriting, *(model.division if divided else ()))
        yield from ((model.network.name, text) for text in texts)
    elif isinstance(model, JoinedModel):
        for each in model.models:
            yield from _notes(each, divided=divided)
    elif isinstance(model, ChainedModel):
        for member in model.members:
            yield from _notes(member.model, divided=divided)


def built_in_names() -> tuple[str, ...]:
    """Return the names of all built-in networks and applications."""
    from ..profiler.zoo.catalog import zoo_names

    return tuple(dict.fromkeys([*zoo_names(), *(application.name for application in applications())]))
