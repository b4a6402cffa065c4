"""An explanation knows what backends answered before: the card of a plan never contradicts itself."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import gapless
from gapless.answers.blocks import Sentence
from gapless.formulations.judge import score
from gapless.formulations.plan import Chunk, Plan
from gapless.formulations.problem import Problem
from gapless.formulations.terms import Objective
from gapless.solvers.protocol import Deadline, SolveStatus
from gapless.solvers.result import Candidate, SolveResult
from gapless.view.explaining.explain import Inquiry
from gapless.view.page.contents import reasoning
from gapless.view.page.headline import standing
from gapless.view.page.subject import Subject
from gapless.view.page.subjects import subject

from ...conftest import Cli
from ..page.markup import among

NO_TIME_S = 1e-9


def problem() -> Problem:
    return gapless.table_problem({"conv": [9, 2], "norm": [9, 2], "pick": [1, None]}, ["a", "b"])


def looked(about: Subject) -> str:
    """Return what the page says about the search."""
    return next(one.text for one in among(reasoning(about), Sentence) if one.text.startswith("Looked"))


def worse(found: SolveResult) -> Plan:
    (network,) = {chunk.network for chunk in found.plan.chunks} if found.plan else {""}
    return Plan(chunks=(Chunk(network=network, start=0, stop=3, unit="a"),))


def test_what_was_proved_before_is_proved() -> None:
    asked = problem()
    best = gapless.plan(asked)
    assert best.plan is not None
    alone = gapless.explain(asked, best.plan, time_limit_s=NO_TIME_S)
    assert not alone.proven
    assert "not proved" in alone.summary
    told = gapless.explain(asked, best.plan, time_limit_s=NO_TIME_S, answers=[best])
    assert told.proven
    assert "Proved: no valid one is better among" in told.summary


def test_a_better_plan_that_was_answered_is_known() -> None:
    asked = problem()
    best = gapless.plan(asked)
    found = replace(
        best, status=SolveStatus.FEASIBLE, proven=0, bound=None, bound_source=None, exhausted=False
    )
    poor = worse(best)
    alone = gapless.explain(asked, poor, time_limit_s=NO_TIME_S)
    assert "No better plan was found" in alone.summary
    told = gapless.explain(asked, poor, time_limit_s=NO_TIME_S, answers=[found])
    assert (told.proven, told.next_best.plan, told.next_best.values) == (False, best.plan, best.values)
    assert "It is not the best plan" in told.summary
    # An optimum that is refuted by another answer proves nothing.
    values = score(asked, poor).values(asked.objective.terms)
    lying = replace(
        best,
        candidates=(Candidate(plan=poor, score=score(asked, poor)),),
        objective=values[0],
        values=values,
        bound=values[0],
    )
    assert gapless.explain(asked, poor, time_limit_s=NO_TIME_S, answers=[lying]).proven
    assert not gapless.explain(asked, poor, time_limit_s=NO_TIME_S, answers=[lying, found]).proven


def test_answers_to_another_problem_say_nothing() -> None:
    asked = problem()
    best = gapless.plan(asked)
    assert best.plan is not None
    other = gapless.plan(asked.with_limits(max_units=2))
    assert other.fingerprint != best.fingerprint
    assert not gapless.explain(asked, best.plan, time_limit_s=NO_TIME_S, answers=[other]).proven


def test_nothing_is_solved_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, seen = problem(), list[Problem]()
    plain = Inquiry.solve

    def noted(self: Inquiry, variant: Problem, deadline: Deadline, *, top: int = 1) -> SolveResult | None:
        seen.append(variant)
        return plain(self, variant, deadline, top=top)

    monkeypatch.setattr(Inquiry, "solve", noted)
    best = gapless.plan(asked, top=2)
    assert best.plan is not None
    alone = gapless.explain(asked, best.plan, time_limit_s=None)
    assert seen.count(asked) == 1
    seen.clear()
    told = gapless.explain(asked, best.plan, time_limit_s=None, answers=[best])
    assert seen.count(asked) == 0
    assert told == alone


def test_in_slack_mode_only_the_answered_plan_is_proved() -> None:
    asked = problem().with_objective(Objective(terms=("idle",), period_slack_permille=100))
    best = gapless.plan(asked)
    assert best.plan is not None
    assert best.status is SolveStatus.OPTIMAL
    assert gapless.explain(asked, best.plan, time_limit_s=NO_TIME_S, answers=[best]).proven
    assert not gapless.explain(asked, worse(best), time_limit_s=NO_TIME_S, answers=[best]).proven


def test_a_card_says_the_same_in_all_its_parts(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = problem()
    compared = gapless.compare(asked, backends=["native", "exhaustive"])
    assert compared.best is not None
    assert compared.best.plan is not None
    card = subject(asked, compared.best.plan, answers=compared, explained=NO_TIME_S)
    assert card.explanation is not None
    assert card.explanation.proven
    assert standing(card).label == "proved best"
    searched = looked(card)
    assert f"by {card.explanation.backend} (limit 1e-09 s; " in searched
    assert "The plans and proofs of native and exhaustive count here, too" in searched
    from_file = subject(asked, compared.best.plan, answers=card.answers, explained=NO_TIME_S)
    assert "come from searches that are not known here" in looked(from_file)
    apart = subject(asked, compared.best.plan, explained=NO_TIME_S)
    assert looked(apart).endswith("more, by explain --time-limit, may improve what is not proved).")
    poor = subject(asked, worse(compared.best), answers=compared, explained=NO_TIME_S)
    assert poor.explanation is not None
    assert poor.explanation.next_best.values == compared.best.values
    assert standing(poor).label == "not the best"
    page = tmp_path / "page.html"
    monkeypatch.setattr("gapless.cli.tasks.reporting.EXPLAIN_S", NO_TIME_S)
    assert cli("report", "pixel7a/alexnet-sparse", "--backends", "native", "--out", page).code == 0
    words = " ".join(re.sub(r"<[^>]+>", "", page.read_text()).split())
    assert "No better plan was found" not in words
    assert "Proved: no valid one is better among" in words
