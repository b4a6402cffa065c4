"""Which policies there are: shipped ones by name, those of installed packages, and those of a user's file."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from ...formulations.coordination.policy import Conduct, Policy
from ...formulations.coordination.sections import Fallback
from ...formulations.errors import InvalidInputError
from ...formulations.plugins import (
    entry_point_names,
    is_reference,
    load_entry_point,
    load_reference,
    reference_hint,
)
from ...formulations.validation import meant
from .dynamic import EarliestDeadline, EarliestFinish, LeastSlack, LongestFirst, RoundRobin, ShortestFirst
from .fixed import TensorFlowLite

GROUP = "gapless.policies"
"""Entry points of packages that bring policies."""


class PolicyInfo(NamedTuple):
    """One shipped policy."""

    make: Callable[[], Policy]  # makes one; a policy serves one scenario or coordinator
    text: str  # what it does, in a line


def _replan() -> Policy:
    from .replan import Replan  # solvers are loaded on demand

    return Replan()


def _adaptive() -> Policy:
    from .adaptive import Adaptive

    return Adaptive()


_WHOLE = Conduct.WHOLE
_REST, _MOST = Fallback.REST, Fallback.BACK_AND_FORTH

SHIPPED = {
    "lst": PolicyInfo(LeastSlack, "least slack first: Band's default"),
    "sel": PolicyInfo(LongestFirst, "of the shortest expected latencies the largest first: short frames"),
    "shortest": PolicyInfo(ShortestFirst, "shortest expected latency first"),
    "heft": PolicyInfo(EarliestFinish, "largest rank first, on the unit that finishes it soonest, reserved"),
    "edf": PolicyInfo(EarliestDeadline, "earliest deadline first"),
    "round-robin": PolicyInfo(RoundRobin, "in the order of arrival, on the idle unit that is quickest"),
    "lst-whole": PolicyInfo(
        partial(LeastSlack, conduct=_WHOLE), "lst on whole networks; layers fall back silently"
    ),
    "sel-whole": PolicyInfo(
        partial(LongestFirst, conduct=_WHOLE), "sel on whole networks; layers fall back silently"
    ),
    "replan": PolicyInfo(_replan, "plans what waits with the native solver, again when it no longer fits"),
    "adaptive": PolicyInfo(
        _adaptive, "a static plan where requests pile up, made again when it drifts; else lst"
    ),
    "tflite": PolicyInfo(
        partial(TensorFlowLite, _REST),
        "one unit a network, loads spread; from the first fallen layer on a CPU, uncoordinated",
    ),
    "tflite-mp": PolicyInfo(
        partial(TensorFlowLite, _MOST), "the same, back and forth between its unit and a CPU"
    ),
    "tflite-fastest": PolicyInfo(
        partial(TensorFlowLite, _REST, fastest=True), "tflite with each network on its fastest unit"
    ),
    "tflite-mp-fastest": PolicyInfo(
        partial(TensorFlowLite, _MOST, fastest=True), "tflite-mp with each network on its fastest unit"
    ),
}
"""The shipped policies, by name."""

DEFAULT_POLICY = "lst"


def policy_names() -> tuple[str, ...]:
    """Return the names of all policies that can be had: shipped ones first."""
    return (*SHIPPED, *(name for name in entry_point_names(GROUP) if name not in SHIPPED))


def make_policy(name: str) -> Policy:
    """Return a new policy.

    `name`: one of `policy_names`, or "file.py:NAME" or "module:NAME" of a subclass of `Policy`, or of a
    function that makes one.
    Raises InvalidInputError: there is none of this name, or it cannot be loaded.
    """
    if name in SHIPPED:
        return SHIPPED[name].make()
    if is_reference(name):
        found: Policy = load_reference(name, what="policy", like=Policy)
    elif name in policy_names():
        found = load_entry_point(GROUP, name, what="policy", like=Policy)
    else:
        raise InvalidInputError(
            f"no policy is called {name[:100]!r}; {reference_hint(name) or meant(name, policy_names())}"
        )
    if not isinstance(getattr(found, "name", None), str):
        found.name = name
    return found
