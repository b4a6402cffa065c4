"""Fingerprints: equal for equal problems however they are built, different for everything else."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import FunctionType

import pytest

from gapless.formulations.canonical import DIGITS, code_identity, digest, plain
from gapless.formulations.chunking.rules import at_most, pin
from gapless.formulations.costs import Interference
from gapless.formulations.deployment import Mode
from gapless.formulations.files import dump_problem, parse_problem
from gapless.formulations.flow_shop.rules import before
from gapless.formulations.flow_shop.tables import workload_of
from gapless.formulations.limits import Limits
from gapless.formulations.plan import Plan
from gapless.formulations.problem import Problem
from gapless.formulations.rules import OpaqueRule
from gapless.formulations.workload import RequestOrder
from gapless.solvers.chunking.samples import sample_problem
from tests.workload_instances import workload_problem

Predicate = Callable[[Plan], bool]
Change = Callable[[Problem], Problem]

WORKLOAD = workload_problem(
    {"a": [[3, 5], [4, 2]], "b": [[2, 7]]}, ["a", "b"], slowdown=[[0, 100], [200, 0]], high=("a",)
)


@pytest.mark.parametrize("problem", [sample_problem(), WORKLOAD], ids=["chunking", "flow_shop"])
def test_a_fingerprint_has_sixteen_digits(problem: Problem) -> None:
    assert len(problem.fingerprint) == DIGITS == 16
    assert int(problem.fingerprint, 16) >= 0


def test_equal_problems_share_it_however_they_are_built() -> None:
    problem = sample_problem().with_rules(at_most(2), pin("l1", unit="big")).with_limits(min_units=2)
    others = [
        replace(sample_problem("gapness"), limits=Limits(min_units=2))
        .with_objective("period,gapness")
        .with_rules(at_most(2))
        .with_rules(pin("l1", unit="big")),
        problem.with_limits(max_units=3).with_limits(max_units=None),
        parse_problem(dump_problem(problem).encode(), name="file"),
    ]
    assert [other.fingerprint for other in others] == [problem.fingerprint] * 3
    assert others == [problem] * 3
    again = parse_problem(dump_problem(WORKLOAD).encode(), name="file")
    assert again.fingerprint == WORKLOAD.fingerprint


def _slower(problem: Problem) -> Problem:
    first, *others = problem.costs.networks
    (time, *row), *rows = first.layer_us
    assert time is not None
    networks = (replace(first, layer_us=((time + 1, *row), *rows)), *others)
    return replace(problem, costs=replace(problem.costs, networks=networks))


CHANGES: dict[str, Change] = {
    "objective": lambda p: p.with_objective("latency"),
    "order of terms": lambda p: p.with_objective("gapness,period"),
    "slack": lambda p: p.with_objective("slack:1:period,gapness"),
    "slack of 0": lambda p: p.with_objective("slack:0:period,gapness"),
    "limit": lambda p: p.with_limits(min_units=1),
    "limit of 0": lambda p: p.with_limits(min_units=0),
    "another limit": lambda p: p.with_limits(max_units=1),
    "rule": lambda p: p.with_rules(lambda view: view.period_us() <= 9999),
    "rule with another number": lambda p: p.with_rules(lambda view: view.period_us() <= 9998),
    "rule with another name": lambda p: p.with_rules(at_most(3)),
    "memory": lambda p: replace(p, platform=replace(p.platform, memory_bytes=901)),
    "source": lambda p: replace(p, platform=replace(p.platform, source="elsewhere")),
    "batch": lambda p: replace(p, costs=replace(p.costs, batch=2)),
    "network": lambda p: replace(p, networks=(replace(p.networks[0], forbidden_cuts=(1,)),)),
    "cost": _slower,
    "co-run costs": lambda p: replace(p, co_run_costs=(p.costs,) * 3),
}


def test_any_change_changes_it() -> None:
    problems = {"": sample_problem()} | {name: change(sample_problem()) for name, change in CHANGES.items()}
    assert len({problem.fingerprint for problem in problems.values()}) == len(CHANGES) + 1


WORKLOAD_CHANGES: dict[str, Change] = {
    "order": lambda p: replace(p, data=replace(workload_of(p), order=RequestOrder.FIXED)),
    "mode": lambda p: replace(p, data=replace(workload_of(p), mode=Mode.STREAM)),
    "slots": lambda p: replace(p, data=replace(workload_of(p), task_slots=1)),
    "requests": lambda p: replace(p, data=replace(workload_of(p), requests=workload_of(p).requests[::-1])),
    "fewer": lambda p: replace(p, data=replace(workload_of(p), requests=workload_of(p).requests[:1])),
    "no slowdown": lambda p: replace(p, interference=None),
    "slowdown": lambda p: replace(
        p, interference=Interference(units=p.platform.unit_names, slowdown_permille=((0, 1), (200, 0)))
    ),
    "rule": lambda p: p.with_rules(before("a0", "b1")),
    "rule the other way": lambda p: p.with_rules(before("b1", "a0")),
    "cost": _slower,
}


def test_any_change_of_a_workload_changes_it() -> None:
    changed = {change(WORKLOAD).fingerprint for change in WORKLOAD_CHANGES.values()}
    assert len(changed | {WORKLOAD.fingerprint}) == len(WORKLOAD_CHANGES) + 1


def test_the_formulation_counts() -> None:
    @dataclass(frozen=True)
    class Data:
        number: int = 3

    @dataclass(frozen=True)
    class Other(Data):
        data_key = "elsewhere"

    assert digest(Data()) != digest(Other())


# Opaque rules: same name, same text.


def ruled(predicate: object) -> str:
    rule = OpaqueRule(name="mine", text="as I like it", predicate=predicate)  # type: ignore[arg-type]
    return sample_problem().with_rules(rule).fingerprint


def compiled(text: str, **names: object) -> Predicate:
    """Return the function `rule` of a source text, as if it stood in a file of a user."""
    found: dict[str, object] = dict(names)
    exec(compile(textwrap.dedent(text), "rules.py", "exec"), found)
    rule = found["rule"]
    assert isinstance(rule, FunctionType)
    return rule


def closed_over(value: object) -> Predicate:
    return lambda plan: len(plan.chunks) == value


def by_default(value: object) -> Predicate:
    def rule(plan: Plan, wanted: object = value) -> bool:
        return len(plan.chunks) == wanted

    return rule


def by_keyword(value: object) -> Predicate:
    def rule(plan: Plan, *, wanted: object = value) -> bool:
        return len(plan.chunks) == wanted

    return rule


def by_global(value: object) -> Predicate:
    return compiled("def rule(plan):\n    return len(plan.chunks) == WANTED", WANTED=value)


def by_constant(value: object) -> Predicate:
    return compiled(f"def rule(plan):\n    return len(plan.chunks) == {value!r}")


def by_a_function_that_it_calls(value: object) -> Predicate:
    return compiled(
        f"""
        def count():
            return {value!r}
        def rule(plan):
            return len(plan.chunks) == count()
        """
    )


def by_a_function_inside(value: object) -> Predicate:
    return compiled(f"def rule(plan):\n    return any(chunk.stop == {value!r} for chunk in plan.chunks)")


def by_a_global_of_a_function_inside(value: object) -> Predicate:
    return compiled(
        "def rule(plan):\n    return any(chunk.stop == WANTED for chunk in plan.chunks)", WANTED=value
    )


def by_a_set(value: object) -> Predicate:
    return compiled(f"def rule(plan):\n    return plan.chunks[0].unit in {{'a', 'b', {value!r}}}")


WAYS = [
    closed_over,
    by_default,
    by_keyword,
    by_global,
    by_constant,
    by_a_function_that_it_calls,
    by_a_function_inside,
    by_a_global_of_a_function_inside,
    by_a_set,
]


@pytest.mark.parametrize("way", WAYS)
def test_code_counts_with_all_that_it_refers_to(way: Callable[[object], Predicate]) -> None:
    values = [2, 3, 2.0, True, "2", None, (2, 3), (2, (3,))]
    assert len({ruled(way(value)) for value in values}) == len(values)
    assert [ruled(way(value)) for value in values] == [ruled(way(value)) for value in values]


def test_different_code_is_different() -> None:
    bodies = ["plan.chunks == ()", "plan.order == ()", "plan.chunks != ()", "not plan.chunks", "True"]
    texts = [f"def rule(plan):\n    return {body}" for body in bodies]
    texts.append(
        "def rule(plan):\n    try:\n        return True\n    except ValueError:\n        return True"
    )
    assert len({ruled(compiled(text)) for text in texts}) == len(texts)


def test_where_code_stands_does_not_matter() -> None:
    text = "def rule(plan):\n    return len(plan.chunks) == 2"
    assert ruled(compiled(text)) == ruled(compiled(f"# A remark.\n\n{text}"))


def test_values_of_dataclasses_count_with_their_class() -> None:
    @dataclass(frozen=True)
    class Most:
        number: int

    @dataclass(frozen=True)
    class Least:
        number: int

    assert ruled(closed_over(Most(2))) == ruled(closed_over(Most(2)))
    assert len({ruled(closed_over(value)) for value in (Most(2), Most(3), Least(2))}) == 3


# What cannot be looked into.


class Checker:
    """An object that can be called, and whose methods can."""

    def __init__(self, most: int) -> None:
        self.most = most

    def __call__(self, plan: Plan) -> bool:
        return len(plan.chunks) <= self.most

    def allowed(self, plan: Plan) -> bool:
        return self(plan)


class Unhashable(Checker):
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Checker)


class Slotted:
    __slots__ = ()

    def __call__(self, plan: Plan) -> bool:
        return True


@dataclass(frozen=True)
class MostChunks:
    number: int

    def __call__(self, plan: Plan) -> bool:
        return len(plan.chunks) <= self.number


@dataclass(frozen=True)
class LeastChunks:
    number: int

    def __call__(self, plan: Plan) -> bool:
        return len(plan.chunks) >= self.number


OPAQUE: list[Callable[[], object]] = [
    lambda: Checker(2),
    lambda: Unhashable(2),
    Slotted,
    lambda: Checker(2).allowed,
    lambda: functools.partial(Checker.__call__, Checker(2)),
    lambda: closed_over(Checker(2)),
    lambda: by_global(Checker(2)),
]


@pytest.mark.parametrize("make", OPAQUE)
def test_what_cannot_be_looked_into_is_equal_to_itself_only(make: Callable[[], object]) -> None:
    one, other = make(), make()
    assert ruled(one) == ruled(one)
    assert ruled(one) != ruled(other)


def test_callable_values_are_told_apart_by_their_class() -> None:
    assert ruled(MostChunks(2)) == ruled(MostChunks(2))
    assert len({ruled(predicate) for predicate in (MostChunks(2), MostChunks(3), LeastChunks(2))}) == 3


def test_code_that_refers_to_itself_comes_to_an_end() -> None:
    rule = compiled("def rule(plan, depth=0):\n    return depth > 3 or rule(plan, depth + 1)")
    assert ruled(rule) == ruled(rule)


def test_a_variable_that_has_no_value_yet_is_no_error() -> None:
    def outer() -> tuple[Predicate, str]:
        def rule(plan: Plan) -> bool:
            return len(plan.chunks) == later

        early = code_identity(rule)
        later = 2
        return rule, early

    rule, early = outer()
    assert code_identity(rule) != early


def test_what_is_no_value_is_refused() -> None:
    with pytest.raises(TypeError, match="memoryview has no canonical JSON"):
        plain(memoryview(b""))


# Another process.

SCRIPT = """
from dataclasses import dataclass
from gapless.formulations.rules import OpaqueRule
from gapless.solvers.chunking.samples import sample_problem

KNOWN = frozenset({"little", "big", "gpu", "npu"})
NUMBERS = {"first": (1, 2.5), "second": [None, True]}

def count(plan):
    return len(plan.chunks) + NUMBERS["first"][0]

def rule(plan, *, most=3):
    units = {chunk.unit for chunk in plan.chunks}
    return units <= KNOWN and plan.chunks[0].unit in {"little", "big", "all"} and count(plan) <= most

def closed(most):
    return lambda plan: count(plan) <= most

for predicate in (rule, closed(4)):
    print(sample_problem().with_rules(OpaqueRule(name="mine", predicate=predicate)).fingerprint)
print(sample_problem().fingerprint)
"""


@pytest.mark.slow
def test_another_process_has_the_same_digits(tmp_path: Path) -> None:
    path = tmp_path / "rules.py"
    path.write_text(SCRIPT)
    said = {
        subprocess.run(
            [sys.executable, path],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(said) == 1
    lines = said.pop().split()
    assert len(set(lines)) == 3
    assert lines[-1] == sample_problem().fingerprint
