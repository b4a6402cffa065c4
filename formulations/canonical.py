"""Canonical JSON of values, and digests of it: what makes two problems the same.

Fields that have their default value are left out, so that new kinds of fields leave the digests of values
that do not use them alone. A rule that is Python code counts by its code: instructions, names, constants,
defaults, and whatever plain values it refers to. Code that refers to anything else is equal to itself only.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from .expr import Expr, to_data

DIGITS = 16
"""Hexadecimal digits of a digest."""

_SCALAR = frozenset({str, int, float, bool, type(None)})

_DEEPEST = 8
"""How far code is followed into the functions that it calls."""

_unknown: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
_held: dict[int, tuple[Any, str]] = {}
"""Digits of what cannot be told, and by identity of what is not hashable or has no weak references."""


def digest(value: Any) -> str:
    """Return hexadecimal digits that differ for values whose canonical JSON differs."""
    text = json.dumps(plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def may_be(told: str | None, value: str) -> bool:
    """Return whether a digest that a file tells can be a given one: earlier versions wrote others."""
    return told is None or len(told) != DIGITS or told == value


def plain(value: Any) -> Any:
    """Return a value of frozen types as what JSON can hold."""
    kind: Any = type(value)
    return value if kind in _SCALAR else _writer(kind)(value)


@cache
def _writer(kind: Any) -> Callable[[Any], Any]:
    """Return what turns values of one type into what JSON can hold."""
    may_be_called = any("__call__" in vars(base) for base in kind.__mro__)
    if not issubclass(kind, Expr) and is_dataclass(kind) and not may_be_called:
        return _dataclass_writer(kind)
    for known, write in _WRITERS.items():
        if issubclass(kind, known):
            return write
    if may_be_called:
        return code_identity
    raise TypeError(f"{kind.__name__} has no canonical JSON")


def _dataclass_writer(kind: Any) -> Callable[[Any], dict[str, Any]]:
    """Return what turns values of a dataclass into their fields that do not have their default value."""
    made = [
        (f.name, f.default if f.default_factory is MISSING else f.default_factory()) for f in fields(kind)
    ]
    key = getattr(kind, "data_key", None)
    about = {"data_key": key} if isinstance(key, str) else {}

    def write(value: Any) -> dict[str, Any]:
        found: dict[str, Any] = dict(about)
        for name, usual in made:
            held = getattr(value, name)
            if type(held) in _SCALAR:  # problems have thousands of them
                if held != usual:
                    found[name] = held
            elif isinstance(held, Expr) or usual is MISSING or held != usual:
                found[name] = plain(held)
        return found

    return write


def _row(values: Any) -> Any:
    # Tables are long: rows of numbers are taken as they are.
    return values if _SCALAR.issuperset(map(type, values)) else [plain(item) for item in values]


_WRITERS: dict[type, Callable[[Any], Any]] = {
    Enum: lambda value: value.value,
    Expr: to_data,
    Mapping: lambda value: {str(key): plain(item) for key, item in value.items()},
    tuple: _row,
    list: _row,
    set: lambda value: sorted((plain(item) for item in value), key=repr),
    frozenset: lambda value: sorted((plain(item) for item in value), key=repr),
}
"""How values of these types and of those derived from them are written."""


def code_identity(function: Callable[..., Any]) -> str:
    """Return digits that two callables share only if they are the same code on the same values."""
    try:
        seen = json.dumps(_of_callable(function, 0), sort_keys=True)
    except _Opaque:
        return _token(function)
    return hashlib.sha256(seen.encode()).hexdigest()[:DIGITS]


class _Opaque(Exception):
    """Something whose value cannot be told."""


def _token(function: Callable[..., Any]) -> str:
    """Return digits that no other object ever has."""
    made = secrets.token_hex(DIGITS // 2)
    try:
        return _unknown.setdefault(function, made)
    except TypeError:  # kept for good, so that no other object takes its place
        return _held.setdefault(id(function), (function, made))[1]


def _of_callable(function: Any, depth: int) -> Any:
    if not isinstance(function, FunctionType) or depth > _DEEPEST:
        raise _Opaque
    try:
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
    except ValueError as error:  # a variable that has no value yet
        raise _Opaque from error
    held = [*cells, *(function.__defaults__ or ()), *sorted((function.__kwdefaults__ or {}).items())]
    names = sorted(_names(function.__code__) & set(function.__globals__))
    return {
        "code": _of_code(function.__code__),
        "holds": [_of_value(value, depth) for value in held],
        "globals": {name: _of_value(function.__globals__[name], depth) for name in names},
    }


def _of_code(code: CodeType) -> Any:
    constants = [_of_code(c) if isinstance(c, CodeType) else _of_constant(c) for c in code.co_consts]
    return [
        code.co_code.hex(),
        code.co_exceptiontable.hex(),
        list(code.co_names),
        list(code.co_varnames),
        list(code.co_freevars),
        constants,
    ]


def _of_constant(constant: Any) -> Any:
    # The order of a set differs between processes.
    return sorted(map(repr, constant)) if isinstance(constant, frozenset) else repr(constant)


def _names(code: CodeType) -> set[str]:
    """Return the names that code and what is nested in it may look up."""
    inner = [_names(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*inner)


def _of_value(value: Any, depth: int) -> Any:
    if isinstance(value, FunctionType):
        return _of_callable(value, depth + 1)
    if isinstance(value, ModuleType | type):
        return f"{getattr(value, '__module__', '')}.{value.__name__}"
    if isinstance(value, str | int | float | bool | None):
        return plain(value)
    if is_dataclass(value) and not callable(value):
        return [type(value).__qualname__, plain(value)]
    if isinstance(value, tuple | list | set | frozenset | Mapping):
        items = value.items() if isinstance(value, Mapping) else value
        found = [_of_value(item, depth) for item in items]
        return sorted(found, key=repr) if isinstance(value, set | frozenset) else found
    raise _Opaque
