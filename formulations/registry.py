"""Which formulations there are, by name and by the data of a problem.

A family of gapless itself is a sub-package of this one whose `__init__` names its kinds of problems, with the
key under which the data of each stands in problem files (`KINDS`), and loads a `Formulation` when it is asked
for (`load`). Others come as entry points of the group `gapless.formulations`, or are registered.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from .errors import InvalidProblemError
from .formulation import Formulation
from .plugins import PluginError, entry_point_names, load_entry_point
from .validation import meant, shown

ENTRY_POINT_GROUP = "gapless.formulations"

_registered: dict[str, Formulation[Any, Any]] = {}


def register_formulation(formulation: Formulation[Any, Any]) -> None:
    """Make a formulation known in this process.

    Raises InvalidProblemError: its name or the key of its data is taken by another one.
    """
    own = formulation.name
    if own in formulation_names() and formulation_named(own) is not formulation:
        raise InvalidProblemError(f"there is a formulation {own!r} already")
    for name, key in _data_keys().items():
        if name != own and key == formulation.data_key:
            what = "problems without data belong" if key is None else f"data under {key!r} belongs"
            raise InvalidProblemError(f"{what} to the formulation {name!r}")
    _registered[formulation.name] = formulation


def formulation_names() -> tuple[str, ...]:
    """Return the names of all formulations: those of gapless, registered ones, entry points."""
    return tuple(dict.fromkeys((*_built_in(), *_registered, *entry_point_names(ENTRY_POINT_GROUP))))


def formulation_named(name: str) -> Formulation[Any, Any]:
    """Return a formulation by name.

    Raises InvalidProblemError: there is none of this name, or it cannot be loaded.
    """
    if name in _registered:
        return _registered[name]
    package = _built_in().get(name)
    if package is not None:
        found: Formulation[Any, Any] = package.load(name)
        return found
    return _entry_point(name)


def formulation_of(data: Any) -> Formulation[Any, Any]:
    """Return the formulation that a problem's own data belongs to; None: the one that needs none.

    Raises InvalidProblemError: it belongs to none.
    """
    if data is None:
        return formulation_by_keys(())
    key = getattr(data, "data_key", None)
    if not isinstance(key, str) or key not in data_keys():
        raise InvalidProblemError(
            f"{type(data).__name__} is no data of a problem: its class needs a `data_key`, one of "
            f"{', '.join(data_keys())}"
        )
    return formulation_by_keys((key,))


def formulation_by_keys(keys: Iterable[str]) -> Formulation[Any, Any]:
    """Return the formulation whose data stands under one of the keys of a problem file.

    Without any such key it is the one that needs no data of its own.
    """
    present = set(keys)
    for known in (_near_keys, _data_keys):  # entry points are looked up only for what is not known without
        for name, key in known().items():
            if key is not None and key in present:
                return formulation_named(name)
        if not present:
            break
    return formulation_named(next(name for name, key in _near_keys().items() if key is None))


def data_keys() -> tuple[str, ...]:
    """Return the keys of problem files under which formulations have their data."""
    return tuple(key for key in _data_keys().values() if key is not None)


def _near_keys() -> dict[str, str | None]:
    """Return the keys of the formulations that are known without looking up entry points."""
    found = {name: package.KINDS[name] for name, package in _built_in().items()}
    return found | {name: formulation.data_key for name, formulation in _registered.items()}


def _data_keys() -> dict[str, str | None]:
    found = _near_keys()
    for name in entry_point_names(ENTRY_POINT_GROUP):
        if name not in found:
            with suppress(InvalidProblemError):  # what cannot be loaded is in the way of nothing else
                found[name] = formulation_named(name).data_key
    return found


@cache
def _built_in() -> dict[str, Any]:
    """Return the package of each formulation of gapless itself, in the order of their names."""
    packages = (found.name for found in iter_modules([str(Path(__file__).parent)]) if found.ispkg)
    loaded = [import_module(f".{name}", __package__) for name in packages]
    return dict(sorted((name, package) for package in loaded for name in getattr(package, "KINDS", ())))


@cache
def _entry_point(name: str) -> Formulation[Any, Any]:
    if name not in entry_point_names(ENTRY_POINT_GROUP):
        raise InvalidProblemError(f"no formulation {shown(name)}; {meant(name, formulation_names())}")
    try:
        found: Formulation[Any, Any] = load_entry_point(
            ENTRY_POINT_GROUP, name, what="formulation", like=Formulation
        )
    except PluginError as error:
        raise InvalidProblemError(str(error)) from error
    return found
