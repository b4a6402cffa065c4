"""Backends that misbehave, for testing that nothing they do gets past the session."""

from __future__ import annotations

import faulthandler
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from gapless.formulations.availability import Availability
from gapless.formulations.plan import Chunk, Plan
from gapless.formulations.problem import Problem
from gapless.solvers.protocol import (
    Capabilities,
    Claim,
    Guarantee,
    RuleHandling,
    SolveOptions,
    SolveStatus,
    StopReason,
    Support,
)


def capabilities(guarantee: Guarantee = Guarantee.EXACT) -> Capabilities:
    checked = RuleHandling.CHECKED
    everything = Support(guarantee=guarantee, rules=checked, opaque_rules=checked, gives_bound=True)
    return Capabilities(summary="a fake", others=everything)


@dataclass
class FakeBackend:
    """Does whatever it is given."""

    act: Callable[[Problem, SolveOptions], Claim]
    capabilities: Capabilities = field(default_factory=capabilities)
    available: Availability = Availability(ok=True)
    name: str = "fake"

    def availability(self) -> Availability:
        return self.available

    def solve(self, problem: Problem, options: SolveOptions) -> Claim:
        return self.act(problem, options)


def claiming(claim: Claim, guarantee: Guarantee = Guarantee.EXACT) -> FakeBackend:
    return FakeBackend(act=lambda problem, options: claim, capabilities=capabilities(guarantee))


def optimal(*plans: Plan, values: tuple[int, ...], bound: int | None, proven: int = 1) -> Claim:
    return Claim(
        status=SolveStatus.OPTIMAL,
        stop=StopReason.COMPLETE,
        plans=plans,
        values=values,
        bound=bound,
        proven=proven,
    )


def feasible(*plans: Plan, bound: int | None = None) -> Claim:
    return Claim(
        status=SolveStatus.FEASIBLE,
        stop=StopReason.TIME_LIMIT,
        plans=plans,
        values=None,
        bound=bound,
    )


def plan(*parts: tuple[int, int, str], network: str = "net") -> Plan:
    return Plan(chunks=tuple(Chunk(network=network, start=a, stop=b, unit=u) for a, b, u in parts))


def crash(problem: Problem, options: SolveOptions) -> Claim:
    faulthandler.disable()  # pytest's handler would print this crash among the results
    os.write(2, b"assertion failed in a native library\n")
    os.kill(os.getpid(), signal.SIGSEGV)
    raise AssertionError("unreachable")


def leave(problem: Problem, options: SolveOptions) -> Claim:
    os._exit(7)


def hang(problem: Problem, options: SolveOptions) -> Claim:
    while True:
        time.sleep(60)


def eat_memory(problem: Problem, options: SolveOptions) -> Claim:
    hoard = []
    while True:
        hoard.append(bytearray(16 * 2**20))


def fail(problem: Problem, options: SolveOptions) -> Claim:
    raise ZeroDivisionError("by nought")
