"""Presenters: who shows what, and that the defaults show every formulation."""

from __future__ import annotations

import pytest
from rich.console import Console

import gapless
from gapless.api.problems import table_problem
from gapless.cli.commands import planning
from gapless.formulations.plan import Plan
from gapless.formulations.problem import Problem
from gapless.solvers.families import families
from gapless.view.formulations import chunking, flow_shop
from gapless.view.presenter import GENERIC, Presenter, presenter_of
from gapless.view.terminal.blocks import blocks_view
from tests.workload_instances import workload_problem

STREAM = table_problem([[9, 2], [1, 8]], ["cpu", "gpu"], network="net")
REQUESTS = workload_problem({"a": [[9, 2], [1, 8]], "b": [[3, 4]]}, ["a", "b"])


def solved(problem: Problem) -> Plan:
    plan = gapless.plan(problem, time_limit_s=1).plan
    assert plan is not None
    return plan


def test_formulations_are_shown_by_the_module_of_their_name() -> None:
    assert presenter_of(STREAM) is chunking.PRESENTER
    assert presenter_of(REQUESTS) is flow_shop.PRESENTER


@pytest.mark.parametrize("problem", [STREAM, REQUESTS], ids=["stream", "requests"])
def test_the_defaults_show_every_formulation(problem: Problem) -> None:
    plan = solved(problem)
    judged = gapless.score(problem, plan)
    console = Console(width=120)
    with console.capture() as capture:
        parts = [*GENERIC.problem_parts(problem), *GENERIC.best_parts(problem, plan, judged)]
        console.print(blocks_view(parts))
    shown = capture.get()
    for name in (*problem.platform.unit_names, *(network.name for network in problem.networks)):
        assert name in shown
    first = problem.formulation.terms[GENERIC.shown_terms(problem)[0]]
    assert GENERIC.legend(problem).startswith(f"{first.label}: {first.text}; ")
    assert dict(GENERIC.glossary(problem))[first.label] == f"{first.text}."
    assert "busy for" in GENERIC.pace_words(problem, plan)
    assert GENERIC.arranged(problem, plan).units
    busy = [time.busy for time in GENERIC.unit_times(problem, plan)]
    assert busy == [(time or 0) / 1000 for time in judged.busy_us]


def test_plans_that_are_too_long_have_a_number() -> None:
    plan = solved(REQUESTS)
    assert presenter_of(REQUESTS).plan_name(plan) == f"plan {plan.plan_id}"
    assert Presenter().plan_name(plan) == f"[{plan}]"


def test_equal_requests_in_each_others_place_look_alike() -> None:
    twins = workload_problem({"a": [[9, 2]]}, ["a", "a"])
    plan = solved(twins)
    names = dict(zip(plan.order, reversed(plan.order), strict=True))
    swapped = Plan(
        chunks=tuple(
            type(chunk)(
                network=chunk.network,
                start=chunk.start,
                stop=chunk.stop,
                unit=chunk.unit,
                request=names[chunk.request],
            )
            for chunk in plan.chunks
        ),
        order=tuple(reversed(plan.order)),
    )
    presenter = presenter_of(twins)
    assert plan != swapped
    assert presenter.shape(twins, plan) == presenter.shape(twins, swapped)
    assert GENERIC.shape(twins, plan) != GENERIC.shape(twins, swapped)


def test_the_help_of_compare_names_the_usual_backends() -> None:
    told = str(planning.compare.__annotations__["backends"].__metadata__[0].help)
    for name, family in families().items():
        assert ", ".join(family.usual.names) in told, name
