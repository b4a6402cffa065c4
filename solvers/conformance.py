"""The tests that every backend must pass; a backend author subclasses `BackendConformance`.

    class TestMyBackend(BackendConformance):
        def make_backend(self):
            return MyBackend()

Plain asserts and method names that pytest collects; nothing here imports pytest.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.resources import files

from ..formulations.costs import Interference
from ..formulations.expr import BoolExpr
from ..formulations.files import parse_problem
from ..formulations.flow_shop.workload import Execution, LoadPolicy, Mode, Request, RequestOrder, Workload
from ..formulations.judge import check, rank_key
from ..formulations.objective import Objective
from ..formulations.plan import Chunk, Plan
from ..formulations.problem import Problem
from ..formulations.rules import (
    AnyRule,
    OpaqueRule,
    PlanView,
    RuleFunction,
    at_most,
    busy_cap,
    cuts_only_after,
    forbid,
    memory_cap,
    needs,
    pin,
    together,
)
from .exhaustive import ExhaustiveBackend
from .protocol import Backend, Guarantee, RuleHandling, SolveOptions, SolveStatus, StopReason
from .result import SolveResult
from .session import solve

_WEAK = {RuleHandling.CHECKED, RuleHandling.REPAIRED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Golden:
    """A problem whose answer is known.

    Attributes
    ----------
    name, why
        What it is about, and how the optimum follows.
    problem
        The instance.
    optimum, best
        Values of the objective terms and the first plan in canonical order; None: infeasible.
    invalid
        Plans with the rule they break.
    conflict
        Names of the demands that contradict each other, when infeasible.
    """

    name: str
    why: str
    problem: Problem
    optimum: tuple[int, ...] | None
    best: Plan | None
    invalid: tuple[tuple[str, Plan], ...]
    conflict: tuple[str, ...]


def golden_instances() -> Iterator[Golden]:
    """Yield the golden instances, in order of their names."""
    for file in sorted(files(f"{__package__}.golden").iterdir(), key=lambda path: path.name):
        if file.name.endswith(".json"):
            data = json.loads(file.read_bytes())
            problem = parse_problem(json.dumps(data["problem"]).encode(), name=file.name)
            yield Golden(
                name=file.name.removesuffix(".json"),
                why=data["why"],
                problem=problem,
                optimum=None if data["optimum"] is None else tuple(data["optimum"]),
                best=None if data["best"] is None else _plan(data["best"]),
                invalid=tuple((entry["breaks"], _plan(entry["chunks"])) for entry in data["invalid"]),
                conflict=tuple(data.get("conflict", ())),
            )


def sample_problem(objective: str = "period,gapness") -> Problem:
    """Return a small instance with all kinds of restrictions, for tests."""
    document = {
        "format": "gapless.problem",
        "version": 1,
        "platform": {
            "name": "board",
            "memory_bytes": 900,
            "units": [
                {"name": "little", "cores": [0, 1], "memory_bytes": 500},
                {"name": "big", "cores": [2, 3]},
                {"name": "all", "cores": [0, 1, 2, 3]},
                {"name": "gpu", "memory_bytes": 400},
            ],
        },
        "networks": [
            {
                "name": "net",
                "layers": [{"name": f"l{i}", "weight_bytes": 20 * i + 10} for i in range(7)],
                "tensors": [
                    {"name": f"t{i}", "bytes": 90 - 12 * i, "source": i - 1, "targets": [i]} for i in range(8)
                ],
                "forbidden_cuts": [3],
            }
        ],
        "costs": {
            "units": ["little", "big", "all", "gpu"],
            "networks": [
                {
                    "network": "net",
                    "layer_us": [
                        [90, 44, 33, 20],
                        [70, 31, 25, 35],
                        [120, 60, 41, None],
                        [33, 20, 15, 17],
                        [80, 45, 30, 9],
                        [None, 25, 20, 60],
                        [61, 30, 22, 14],
                    ],
                    "transfer_in_us": [[0, 0, 0, 3]] * 8,
                    "transfer_out_us": [[0, 0, 0, 2]] * 8,
                }
            ],
        },
    }
    problem = parse_problem(json.dumps(document).encode(), name="sample")
    return problem.with_objective(objective)


def gpu_needs_big(view: PlanView) -> BoolExpr:
    """Demand that a plan on the gpu also uses the big cores, as a user would write it."""
    return view.uses("gpu").implies(view.uses("big"))


def sample_rules() -> dict[str, tuple[RuleFunction | AnyRule, ...]]:
    """Return rules of every kind for `sample_problem`; the last ones contradict each other."""
    return {
        "pin": (pin("l1", unit="little"),),
        "forbid": (forbid("l4", unit="gpu"),),
        "together": (together("l0", "l3"),),
        "at_most": (at_most(2),),
        "implication": (gpu_needs_big,),
        "needs": (needs("big", "little"),),
        "busy_cap": (busy_cap("big", most_us=90),),
        "memory_cap": (memory_cap(760),),
        "cuts": (cuts_only_after("l1", "l4"),),
        "position": (lambda view: view.position("l6") >= 2,),
        "numbers": (lambda view: 2 * view.busy_us("gpu") + view.latency_us() <= 5 * view.period_us(),),
        "opaque": (OpaqueRule(name="odd", predicate=lambda plan: plan.chunks[0].stop % 2 == 1),),
        "contradiction": (pin("l4", unit="gpu"), forbid("l4", unit="gpu")),
    }


def sample_workloads() -> Iterator[Problem]:
    """Yield two requests of two networks on two units, in the ways in which workloads can differ."""
    document = {
        "format": "gapless.problem",
        "version": 1,
        "platform": {"name": "board", "memory_bytes": 120, "units": [{"name": "npu"}, {"name": "cpu"}]},
        "networks": [
            {"name": name, "layers": [{"name": f"l{i}", "weight_bytes": 20} for i in range(3)]}
            for name in "ab"
        ],
        "costs": {
            "units": ["npu", "cpu"],
            "networks": [
                {"network": "a", "layer_us": [[30, 61], [42, 25], [50, None]]},
                {"network": "b", "layer_us": [[20, 71], [33, 38], [64, 29]]},
            ],
        },
    }
    plain = parse_problem(json.dumps(document).encode(), name="workload")
    requests = tuple(Request(name=f"{name}0", network=name) for name in "ab")
    late = (requests[0], replace(requests[1], arrival_us=25, deadline_us=150))
    slowdown = Interference(
        units=("npu", "cpu"), slowdown_permille=((0, 150), (320, 0)), high_from_permille=1000
    )
    fixed = Workload(requests=requests, order=RequestOrder.FIXED)
    for workload, interference, objective in (
        (Workload(requests=requests), slowdown, "makespan,latency"),
        (Workload(requests=requests, task_slots=1), None, "idle"),
        (Workload(requests=requests, mode=Mode.STREAM), slowdown, "period,contention,displacement"),
        (Workload(requests=late, load_policy=LoadPolicy.RUNNING), slowdown, "bubbles,peak_memory"),
        (fixed, None, "makespan,work"),
        (replace(fixed, execution=Execution.COLUMNS), slowdown, "makespan,bubbles"),
        (Workload(requests=requests, execution=Execution.COLUMNS), None, "gapness,bottleneck"),
    ):
        problem = replace(plain, workload=workload, interference=interference).with_objective(objective)
        if workload.load_policy is LoadPolicy.RUNNING:  # less than all weights: not everything runs at once
            problem = replace(problem, platform=replace(plain.platform, memory_bytes=90))
        yield problem


class BackendConformance:
    """What a backend promises by its capabilities, as tests."""

    def make_backend(self) -> Backend:
        """Return the backend under test."""
        raise TypeError("a subclass of BackendConformance overrides make_backend")

    def _solve(self, problem: Problem, top: int = 1, **options: object) -> SolveResult:
        asked = replace(SolveOptions(top=top), **options)  # type: ignore[arg-type]
        return solve(problem, self.make_backend(), asked, explain=False)

    @property
    def _exact(self) -> bool:
        return self.make_backend().capabilities.guarantee is Guarantee.EXACT

    def _able(self, problem: Problem) -> bool:
        can = self.make_backend().capabilities
        return can.requires <= problem.features <= can.features and set(problem.objective.terms) <= can.terms

    def _agrees(self, problem: Problem, top: int = 6, distance: int = 1) -> None:
        """Compare a result with the oracle's: equal lists if exact, never better otherwise."""
        asked = SolveOptions(top=top, distance=distance)
        result = self._solve(problem, top, distance=distance)
        oracle = solve(problem, ExhaustiveBackend(), asked, explain=False)
        if self._exact:
            assert result.status is oracle.status
            assert [c.plan for c in result.candidates] == [c.plan for c in oracle.candidates]
            assert result.proven == len(oracle.candidates)
            assert result.bound == oracle.bound
        elif result.values is not None and oracle.values is not None:
            assert result.values >= oracle.values
            assert result.bound is None or result.bound <= oracle.values[0]

    def test_golden_instances(self) -> None:
        """The optimum is found, or infeasibility is proved, as worked out by hand."""
        for golden in golden_instances():
            if not self._able(golden.problem):
                continue
            result = self._solve(golden.problem)
            if self._exact:
                assert (result.values, result.plan) == (golden.optimum, golden.best), golden.name
                wanted = SolveStatus.INFEASIBLE if golden.best is None else SolveStatus.OPTIMAL
                assert result.status is wanted, golden.name
            elif result.values is not None:
                assert golden.optimum is not None, golden.name
                assert result.values >= golden.optimum, golden.name

    def test_every_plan_is_valid_and_the_bound_below(self) -> None:
        """No plan breaks anything, and no bound lies above a plan."""
        for golden in golden_instances():
            if self._able(golden.problem):
                result = self._solve(golden.problem, top=3)
                for candidate in result.candidates:
                    assert check(golden.problem, candidate.plan) == ()
                if result.objective is not None and result.bound is not None:
                    assert result.bound <= result.objective

    def test_every_objective_agrees_with_the_oracle(self) -> None:
        """All terms that the backend declares, alone and in pairs."""
        for text in (
            "period",
            "gapness",
            "paper",
            "latency",
            "bubbles",
            "peak_memory",
            "idle",
            "peak_memory,period",
            "latency,gapness",
            "slack:100",
        ):
            problem = sample_problem(text)
            if self._able(problem):
                self._agrees(problem)

    def test_every_limit_agrees_with_the_oracle(self) -> None:
        """All filters of `Limits`, satisfiable or not."""
        for limits in (
            {"min_units": 3},
            {"max_units": 1},
            {"min_units": 2, "max_units": 2},
            {"min_units": 3, "max_units": 2},
            {"min_balance_permille": 700},
            {"max_gapness_us": 40},
            {"min_utilisation_permille": 550},
            {"max_period_us": 150},
            {"max_period_us": 20},
        ):
            problem = sample_problem().with_limits(**limits)
            if self._able(problem):
                self._agrees(problem)

    def test_every_kind_of_rule_agrees_with_the_oracle(self) -> None:
        """Rules are kept, the optimum under them is found, and their handling is told."""
        can = self.make_backend().capabilities
        for rules in sample_rules().values():
            problem = sample_problem().with_rules(*rules)
            if not self._able(problem):
                continue
            self._agrees(problem, top=3)
            handling = self._solve(problem).handling
            for rule in problem.rules:
                wanted = can.opaque_rules if isinstance(rule, OpaqueRule) else can.rules
                assert handling[rule.name] is wanted
                if self._exact:
                    assert handling[rule.name] not in _WEAK

    def test_plans_that_differ_agree_with_the_oracle(self) -> None:
        """The session asks for lists, by rules or longer ones, until enough plans are far apart."""
        for problem in (sample_problem(), self._plain()):
            if self._able(problem):
                self._agrees(problem, top=3, distance=2)

    def test_workloads_agree_with_the_oracle(self) -> None:
        """Every way in which workloads can differ, as far as the backend declares it."""
        samples = list(sample_workloads())
        for problem in samples + [sample.with_limits(max_units=1) for sample in samples]:
            if not self._able(problem):
                continue
            result = self._solve(problem)
            oracle = solve(problem, ExhaustiveBackend(), SolveOptions(), explain=False)
            if self._exact:
                assert result.status is oracle.status
                assert (result.values, result.bound) == (oracle.values, oracle.bound)
            elif result.values is not None and oracle.values is not None:
                assert result.values >= oracle.values
                assert result.bound is None or result.bound <= oracle.values[0]

    def test_the_best_plans_are_distinct_and_ordered(self) -> None:
        """Top-K has no plan twice, and is in canonical order as far as it is proven."""
        problem = sample_problem()
        problem = problem if self._able(problem) else self._plain()
        result = self._solve(problem, top=8)
        plans = [c.plan for c in result.candidates]
        assert len(set(plans)) == len(plans)
        keys = [rank_key(problem, c.plan, c.score) for c in result.candidates]
        assert keys == sorted(keys)

    def test_asking_for_more_plans_than_exist(self) -> None:
        """The whole space comes back, and is said to be exhausted."""
        problem = self._plain()
        result = self._solve(problem, top=50)
        if self._exact:
            assert len(result.candidates) == 4
            assert result.exhausted
            assert result.proven == 4

    def test_the_objective_decides(self) -> None:
        """Another objective changes the plan: what is asked reaches the search."""
        golden = {g.name: g for g in golden_instances()}["gapness_first"].problem
        if self._exact and self._able(golden):
            by_gapness = self._solve(golden).plan
            if self._able(golden.with_objective("period")):
                assert by_gapness != self._solve(golden.with_objective("period")).plan

    def test_equal_seeds_give_equal_plans(self) -> None:
        """Two runs with one seed answer alike."""
        if self.make_backend().capabilities.deterministic:
            runs = [self._solve(self._plain(), top=4, seed=7).candidates for _ in range(2)]
            assert runs[0] == runs[1]

    def test_a_time_limit_is_no_proof_of_infeasibility(self) -> None:
        """With hardly any time, the status stays honest."""
        problem = self._plain()
        result = self._solve(problem, time_limit_s=1e-6)
        assert result.status is not SolveStatus.INFEASIBLE
        if result.status is SolveStatus.NO_SOLUTION:
            assert result.stop is not StopReason.COMPLETE

    def _plain(self) -> Problem:
        """Return a problem that uses no special feature; it has four plans."""
        golden = {g.name: g for g in golden_instances()}["each_to_its_best"].problem
        plain = golden.with_objective("period")
        return plain if self._able(plain) else plain.with_objective(Objective.paper())


def _plan(chunks: list[dict[str, object]]) -> Plan:
    return Plan(chunks=tuple(Chunk(**chunk) for chunk in chunks))  # type: ignore[arg-type]
