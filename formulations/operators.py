"""Operators in words, with the attributes that decide who can run them, and rules about them.

An operator is described as "Conv[kernel=3,stride=2]"; attributes that have their usual value are left out. A
rule names a type, and conditions that all have to hold: "Softplus", "ConvTranspose[stride>=4]",
"Conv[dilation>=2]", "Resize[mode=cubic]".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from .errors import InvalidInputError

USUAL = {"kernel": "1", "stride": "1", "dilation": "1", "group": "1", "mode": "nearest"}
"""What attributes are when a description does not say; a rule can name these attributes only."""

_FORM = re.compile(r"([^\[\],=<>\s]+)(?:\[([^\[\]]+)\])?")
_CONDITION = re.compile(r"(\w+)(>=|<=|=)([\w.-]+)")

Rule = tuple[str, tuple[tuple[str, str, str], ...]]
"""A type, and conditions: attribute, comparison, value."""


def described(kind: str, attributes: Mapping[str, str | int]) -> str:
    """Return an operator in words; `attributes` are some of `USUAL`."""
    said = [f"{name}={value}" for name, value in sorted(attributes.items()) if str(value) != USUAL[name]]
    return f"{kind}[{','.join(said)}]" if said else kind


@cache
def parse_rule(text: str) -> Rule:
    """Read a rule, or the description of an operator, which has the same form."""
    found = _FORM.fullmatch(text)
    conditions = [_CONDITION.fullmatch(part) for part in (found[2] or "").split(",")] if found else []
    if found and not found[2]:
        return found[1], ()
    known = [condition.groups() for condition in conditions if condition]
    ordered = all(sign == "=" or value.isdigit() for _, sign, value in known)
    if not found or len(known) != len(conditions) or not {name for name, *_ in known} <= set(USUAL):
        raise InvalidInputError(
            f"{text[:100]!r} is no rule about operators: write a type, as 'Softplus', or with conditions, as "
            f"'ConvTranspose[stride>=4]'; there are {', '.join(USUAL)}"
        )
    if not ordered:
        raise InvalidInputError(f"rule {text!r} compares what is no whole number with >= or <=")
    return found[1], tuple((name, sign, value) for name, sign, value in known)


def rule_problems(rules: Iterable[str]) -> Iterator[str]:
    """Yield what is wrong with rules, in words."""
    for rule in rules:
        try:
            parse_rule(rule)
        except InvalidInputError as error:
            yield str(error)


def excluded(operators: Iterable[str], rules: Iterable[str]) -> tuple[str, ...]:
    """Return those operators, in words, that a rule is about."""
    wanted = [parse_rule(rule) for rule in rules]
    return tuple(text for text in operators if any(_holds(_read(text), rule) for rule in wanted))


@cache
def _read(operator: str) -> Rule:
    try:
        return parse_rule(operator)
    except InvalidInputError:  # files can call operators whatever they like
        return operator, ()


def _holds(operator: Rule, rule: Rule) -> bool:
    if operator[0] != rule[0]:
        return False
    attributes = {**USUAL, **{name: value for name, _, value in operator[1]}}
    return all(_compare(attributes[name], sign, value) for name, sign, value in rule[1])


def _compare(value: str, sign: str, limit: str) -> bool:
    if sign == "=":
        return value == limit
    return value.isdigit() and (int(value) >= int(limit) if sign == ">=" else int(value) <= int(limit))
