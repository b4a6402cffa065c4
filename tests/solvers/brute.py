"""Small problems of every kind, and their plans in canonical order by brute force."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing import get_context

from gapless.formulations.chain import Chain, Part
from gapless.formulations.chunking.rules import (
    apart,
    at_least,
    at_most,
    avoid,
    busy_cap,
    cuts_only_after,
    forbid,
    latency_cap,
    memory_cap,
    needs,
    pin,
    together,
)
from gapless.formulations.chunking.tables import chain_of
from gapless.formulations.costs import CostTable, NetworkCosts
from gapless.formulations.expr import abs_of, max_of, min_of
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.formulations.judge import rank_key, score
from gapless.formulations.network import Layer, Network, Tensor
from gapless.formulations.pipelines.rules import energy_cap
from gapless.formulations.plan import Plan
from gapless.formulations.problem import Problem
from gapless.formulations.rules import AnyRule, OpaqueRule, RuleFunction
from gapless.formulations.terms import Objective
from gapless.solvers.protocol import Backend, Claim, SolveOptions
from tests.powers import with_powers

UNITS = "abcde"


def problem_of(
    rows: list[list[int | None]],
    *,
    transfers: tuple[list[list[int]], list[list[int]]] | None = None,
    cores: dict[str, tuple[int, ...]] | None = None,
    unit_bytes: dict[str, int] | None = None,
    device_bytes: int | None = None,
    weights: list[int] | None = None,
    tensors: list[int] | None = None,
    forbidden: tuple[int, ...] = (),
) -> Problem:
    """Return a problem from plain tables; layers are l0, l1, ..., units a, b, ..."""
    count, names = len(rows), tuple(UNITS[: len(rows[0])])
    sizes = weights or [0] * count
    network = Network(
        name="net",
        layers=tuple(Layer(name=f"l{i}", weight_bytes=sizes[i]) for i in range(count)),
        tensors=tuple(
            Tensor(name=f"t{i}", bytes=size, source=i - 1, targets=(i,))
            for i, size in enumerate(tensors or ())
        ),
        forbidden_cuts=forbidden,
    )
    into, out = transfers or ([], [])
    costs = NetworkCosts(
        network="net",
        layer_us=tuple(map(tuple, rows)),
        transfer_in_us=tuple(map(tuple, into)),
        transfer_out_us=tuple(map(tuple, out)),
    )
    units = tuple(
        ProcessingUnit(name=n, cores=(cores or {}).get(n, ()), memory_bytes=(unit_bytes or {}).get(n))
        for n in names
    )
    return Problem(
        platform=with_powers(Platform(name="board", units=units, memory_bytes=device_bytes)),
        networks=(network,),
        costs=CostTable(units=names, networks=(costs,)),
    )


def random_problem(seed: int, *, layers: int = 6, units: int = 3, features: str = "") -> Problem:
    """Return a random problem with some of the features: n(one), t(ransfers), c(onflict), u(nit memory),
    d(evice memory), f(orbidden cuts), e(qual units and layers)."""
    rng = random.Random(seed)
    top = 4 if "e" in features else 60
    rows: list[list[int | None]] = [[rng.randint(1, top) for _ in range(units)] for _ in range(layers)]
    if "e" in features:
        rows = [[row[0]] * units for row in rows]
    if "n" in features:
        for row in rows:
            if rng.random() < 0.4:
                row[rng.randrange(units)] = None
    weights = [rng.randint(0, 30) for _ in range(layers)]
    tensors = [rng.randint(0, 30) for _ in range(layers + 1)]
    whole = sum(weights) + 2 * max(tensors)
    return problem_of(
        rows,
        transfers=(_table(rng, layers, units), _table(rng, layers, units)) if "t" in features else None,
        cores={"a": (0, 1), "b": (1, 2)} if "c" in features else None,
        unit_bytes={"a": whole // 2, "c": whole // 3} if "u" in features else None,
        device_bytes=whole if "d" in features else None,
        weights=weights,
        tensors=tensors,
        forbidden=(2, 4) if "f" in features else (),
    )


def _table(rng: random.Random, layers: int, units: int) -> list[list[int]]:
    return [[rng.randint(0, 9) for _ in range(units)] for _ in range(layers + 1)]


@dataclass(frozen=True)
class Case:
    """One thing to get right."""

    name: str
    features: str = ""
    objective: str = "period,gapness"
    limits: dict[str, int] = field(default_factory=dict)
    rules: tuple[RuleFunction | AnyRule, ...] = ()

    def problem(self, seed: int, *, layers: int = 6, units: int = 3) -> Problem:
        """Return an instance of it."""
        problem = random_problem(seed, layers=layers, units=units, features=self.features)
        objective = Objective.parse(self.objective)
        return problem.with_objective(objective).with_limits(**self.limits).with_rules(*self.rules)


FEATURES = [
    Case(f"feature-{text or 'plain'}", features=text) for text in ("", "n", "t", "c", "f", "e", "ntcudf")
]
MEMORY = [Case(f"memory-{text}", features=text, objective="peak_memory,period") for text in ("u", "d", "ud")]
TERMS = [
    Case(f"by-{text}", features="nt", objective=text)
    for text in (
        "period",
        "gapness",
        "paper_gapness",
        "latency",
        "bubbles",
        "peak_memory",
        "idle",
        "idle,latency",
        "paper",
        "peak_memory,bubbles,idle",
        "energy",
        "units,energy",
        "energy,period,units",
        "stream_latency,in_flight",
        "in_flight,period",
    )
]
LIMITS = [
    Case(f"limit-{name}-{value}", features="t", limits={name: value}, objective=objective)
    for name, value, objective in (
        ("max_period_us", 120, "latency"),
        ("min_units", 2, "latency"),
        ("max_units", 2, "period"),
        ("max_units", 1, "latency"),
        ("max_units", 9, "period"),
        ("min_balance_permille", 700, "period"),
        ("min_balance_permille", 1, "latency"),
        ("max_gapness_us", 25, "period"),
        ("min_utilisation_permille", 600, "period,gapness"),
        ("max_period_us", 5, "period"),
        ("max_latency_us", 130, "period"),
        ("max_latency_us", 150, "energy"),
        ("max_stream_latency_us", 130, "period"),
        ("max_in_flight", 1, "period"),
        ("max_in_flight", 2, "bubbles"),
        ("max_energy_nj", 150_000, "period"),
        ("max_energy_nj", 110_000, "latency"),
    )
]
RULES = [
    Case(f"rule-{name}", rules=rules, features=features, objective=objective)
    for name, rules, features, objective in (
        ("pin", (pin("l3", unit="b"),), "", "period"),
        ("forbid", (forbid(0, unit="a"),), "t", "period"),
        ("together", (together("l1", "l4"),), "", "period,gapness"),
        ("apart", (apart("l1", "l2"),), "", "latency"),
        ("at_most", (at_most(2),), "", "period"),
        ("at_least", (at_least(3),), "", "latency"),
        ("needs", (needs("a", "b"), avoid("c")), "", "period"),
        ("busy_cap", (busy_cap("b", most_us=60),), "t", "period"),
        ("memory_cap", (memory_cap(90, unit="a"), memory_cap(200)), "", "period"),
        ("latency_cap", (latency_cap(most_us=150),), "", "gapness"),
        ("cuts", (cuts_only_after("l1", "l3"),), "", "period"),
        ("position", (lambda v: (v.position("l3") >= 1) & (v.position("l5") <= 1),), "", "period"),
        ("not_gapness", (lambda v: v.gapness_us() >= 20,), "", "gapness"),
        ("period_at_least", (lambda v: ~(v.period_us() < 90),), "t", "period"),
        ("either", (lambda v: (v.busy_us("a") >= 50) | (v.busy_us("b") == 0),), "", "period"),
        ("maxima", (lambda v: max_of([v.busy_us("a"), v.busy_us("b")]) >= v.busy_us("c") + 7,), "", "period"),
        ("minima", (lambda v: min_of([v.busy_us("a"), v.busy_us("c")]) >= 10,), "", "latency"),
        ("distance", (lambda v: abs_of(v.busy_us("a") - v.busy_us("b")) <= 15,), "", "period"),
        ("not_equal", (lambda v: v.chunks() != 2,), "", "period"),
        ("bubbles", (lambda v: v.bubbles_us() >= v.period_us() - 30,), "", "bubbles"),
        ("memory", (lambda v: v.memory_bytes("a") >= v.memory_bytes("b") + 1,), "", "peak_memory"),
        ("peak", (lambda v: v.peak_bytes() >= 170,), "", "peak_memory"),
        ("cut_iff", (lambda v: v.cut_after("l2").implies(v.on("l0", "a")) & v.uses("c"),), "", "period"),
        (
            "numbers",
            (lambda v: 3 * v.busy_us("a") + v.latency_us() <= 5 * v.period_us() - 40,),
            "t",
            "period",
        ),
        ("in_flight", (lambda v: (v.in_flight() >= 3) & (v.stream_latency_us() >= 90),), "", "period"),
        ("energy_cap", (energy_cap(most_nj=140_000),), "t", "period"),
        ("energy_at_least", (lambda v: v.energy_nj() >= 120_000,), "", "energy"),
        ("units", (lambda v: (v.units_used() == 2) | (v.energy_nj() <= 9),), "", "period"),
        ("contradiction", (pin("l3", unit="b"), forbid("l3", unit="b")), "", "period"),
        ("impossible", (at_least(4),), "", "period"),
    )
]
OPAQUE = [
    Case("opaque", rules=(OpaqueRule(name="odd", predicate=lambda plan: plan.chunks[0].stop % 2 == 1),)),
    Case("opaque-none", rules=(OpaqueRule(name="no", predicate=lambda plan: False),), features="f"),
]
CASES = FEATURES + MEMORY + TERMS + LIMITS + RULES + OPAQUE


def all_parts(chain: Chain) -> Iterator[tuple[Part, ...]]:
    """Yield the chunks of every plan that is well formed."""

    def extend(parts: tuple[Part, ...], left: frozenset[int]) -> Iterator[tuple[Part, ...]]:
        start = parts[-1][1] if parts else 0
        if start == chain.layer_count:
            yield parts
        for unit in left:
            for stop in range(start + 1, chain.layer_count + 1):
                if None not in [row[unit] for row in chain.layer_us[start:stop]]:
                    yield from extend((*parts, (start, stop, unit)), left - {unit})

    return extend((), frozenset(range(chain.unit_count)))


_ranked: dict[str, list[Plan]] = {}


def ranked(problem: Problem) -> list[Plan]:
    """Return all valid plans in canonical order; those of small spaces are kept for the next who asks."""
    known = _ranked.get(problem.fingerprint)
    if known is not None:
        return known
    found = []
    for parts in all_parts(chain_of(problem)):
        plan = chain_of(problem).plan(parts)
        judged = score(problem, plan)
        if judged.valid:
            found.append((rank_key(problem, judged), plan))
    plans = [plan for _, plan in sorted(found)]
    if len(plans) <= 1000:
        _ranked[problem.fingerprint] = plans
    return plans


def values_of(problem: Problem, plan: Plan) -> tuple[int, ...]:
    """Return the terms of the objective of a plan."""
    return score(problem, plan).values(problem.objective.terms)


def every(problem: Problem) -> list[Plan]:
    """Return all valid plans, best first, by brute force over the whole problem; slack mode, too."""
    slack = problem.objective.period_slack_permille
    if slack is None:
        return ranked(problem)
    plain = problem.with_objective(Objective(terms=problem.objective.terms))
    plans = ranked(plain)
    periods = {p: score(plain, p).period_us for p in plans}
    cap = min(periods.values(), default=0) * (1000 + slack) // 1000
    return [p for p in plans if periods[p] <= cap]


def claims(backend: Backend, jobs: list[tuple[Problem, SolveOptions]]) -> list[Claim]:
    """Return what a backend claims for each job, in one child process: solvers do not share one.

    The child is forked, so that rules need not be sent.
    """
    context = get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(
        target=lambda: sender.send([backend.solve(problem, options) for problem, options in jobs])
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    sender.close()
    try:
        answer: list[Claim] = receiver.recv()
        return answer
    finally:
        process.kill()
        process.join()
