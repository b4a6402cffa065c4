"""Comparisons over many problems: everybody is asked, everything is kept, and one's own may misbehave."""

from __future__ import annotations

from pathlib import Path

import pytest

import gapless
from gapless.executor.progress import Step
from gapless.formulations.errors import InvalidInputError
from gapless.sweeps.contest import compare_instances, usual_backends
from gapless.sweeps.instances import InstanceSet

BOARDS = ("pixel7a/octree", "oneplus11/octree")

OWN = """
import os, time
from gapless.formulations.availability import Availability
from gapless.solvers.protocol import *
from gapless.solvers.native import NativeBackend

class Mine:
    name = "mine"
    capabilities = Capabilities(summary="", formulations={"chunking": PROPOSING})
    def availability(self):
        return Availability(ok=True)
    def solve(self, problem, options):
        plans = NativeBackend().solve(problem, options).plans
        best = Claim(status=SolveStatus.FEASIBLE, stop=StopReason.TIME_LIMIT, plans=plans)
        options.publish(best)
        if problem.platform.name.startswith("oneplus"):
            MISBEHAVE
        return best
"""


def own(folder: Path, misbehave: str) -> str:
    path = folder / "mine.py"
    path.write_text(OWN.replace("MISBEHAVE", misbehave))
    return f"{path}:Mine"


def test_every_problem_is_asked_of_every_backend() -> None:
    seen: list[Step] = []
    found = compare_instances(
        ",".join(BOARDS), backends=["native", "exhaustive"], objective="period", report=seen.append
    )
    assert found.instances == BOARDS
    assert found.backends == ("native", "exhaustive")
    assert [(one.instance, one.backend) for one in found.answers] == [
        (board, backend) for board in BOARDS for backend in found.backends
    ]
    for one in found.answers:
        assert one.row.value == gapless.plan(one.instance, objective="period").objective
        assert one.course[-1].value == one.row.value
        assert one.row.model == one.instance
        assert (one.row.plan_source, one.row.bound_source) == ("own", "own")
    assert (seen[-1].done, seen[-1].total) == (4, 4)
    assert found.time_limit_s is None
    assert not found.disagreements


@pytest.mark.slow
def test_cold_and_warm_runs_are_different_backends() -> None:
    drawn = InstanceSet(generate={"formulation": "flow_shop", "requests": 2, "units": 2})
    found = compare_instances(drawn, backends=["native", "cpsat"], start="both", time_limit_s=1.0)
    assert found.backends == ("native", "cpsat", "cpsat (cold)")
    assert found.time_limit_s == 1.0


def test_what_was_answered_is_not_asked_again(tmp_path: Path) -> None:
    first = compare_instances(BOARDS[0], backends=["native"], out=tmp_path)
    with pytest.raises(InvalidInputError, match="--resume"):
        compare_instances(",".join(BOARDS), backends=["native"], out=tmp_path)
    more = compare_instances(",".join(BOARDS), backends=["native"], out=tmp_path, resume=True)
    assert (first.resumed, more.resumed, len(more.answers)) == (0, 1, 2)
    assert more.answers[0] == first.answers[0]
    assert (tmp_path / "sweep.csv").read_text().count("\n") == 3


def test_a_heuristic_of_ones_own_that_hangs_is_ended_and_counts_with_what_it_showed(tmp_path: Path) -> None:
    mine = own(tmp_path, "time.sleep(60)")
    found = compare_instances(",".join(BOARDS), backends=["native", mine], time_limit_s=1)
    assert found.backends == ("native", "mine")
    hung = found.answers[-1]
    assert (hung.backend, hung.row.stop, hung.row.value) == ("mine", "time_limit", found.answers[2].row.value)
    assert hung.end_s < 50  # it sleeps for a minute


def test_a_heuristic_that_dies_is_named_tried_again_and_costs_its_answers_only(tmp_path: Path) -> None:
    mine = own(tmp_path, "os._exit(3)")
    found = compare_instances(",".join(BOARDS), backends=["native", mine], time_limit_s=5.0)
    (lost,) = found.failed
    assert (lost.instance, lost.backend, lost.row.attempts) == ("oneplus11/octree", "mine", 3)
    assert "exit code 3" in lost.row.error
    assert any("oneplus11/octree" in note and "tried again (2 of 3)" in note for note in found.notes)
    assert len(found.answers) == 4


def test_two_backends_of_one_name_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    names = [own(tmp_path, "pass"), own(tmp_path / "other", "pass")]
    found = compare_instances(BOARDS[0], backends=names)
    assert found.backends == tuple(names)


def test_usual_backends_are_those_of_all_problems() -> None:
    board = gapless.load_problem(BOARDS[0])
    phone = gapless.load_workload("vit", platform="kirin990", passage="ordered")
    assert usual_backends([board]) == ("native", "exhaustive", "cpsat", "z3", "pulp")
    assert usual_backends([board, phone]) == ("native", "cpsat", "pulp")


def test_what_cannot_be_compared_is_told() -> None:
    with pytest.raises(InvalidInputError, match="no backends are given"):
        compare_instances(BOARDS[0], backends=[])
    with pytest.raises(gapless.GaplessError, match="no backend 'nativ'"):
        compare_instances(BOARDS[0], backends=["nativ"])
