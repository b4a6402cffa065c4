"""Hetero2Pipe's study recomputed: small numbers, and the command."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.hetero2pipe import __main__ as command
from benchmarks.hetero2pipe import here, phones, planners
from benchmarks.hetero2pipe.playing import KIRIN, OURS, PAPERS, Study, answers, ask, on_units, ratios
from benchmarks.printing import Part, Statement
from gapless.formulations.workload import LoadPolicy
from gapless.profiler.platforms.workloads import shipped_workload

SMALL = Study(platforms=(KIRIN,), count=2, limit_s=0.02, exact_s=1.0, exact_count=1)


def statements(parts: Iterator[Part]) -> list[Statement]:
    return [part for part in parts if isinstance(part, Statement)]


def test_no_class_contradicts_the_paper() -> None:
    assert all(found.holds for found in statements(phones.classes(SMALL)))


def test_a_plan_is_proven_only_where_a_backend_has_proven_it() -> None:
    """A gap of a ten-thousandth, or a run at its limit, is no proof."""
    assert ask(shipped_workload(KIRIN, "bert"), OURS, 1.0).proven
    hard = ask(shipped_workload(KIRIN, "yolov4,mobilenetv2,vit,googlenet,vit,resnet50"), OURS, 0.02)
    assert not hard.proven
    assert hard.bound_us is not None
    assert hard.makespan_us is not None
    assert hard.bound_us < hard.makespan_us


def test_throughput_is_networks_over_latency() -> None:
    (first, _), texts = answers(SMALL, KIRIN), SMALL.texts(KIRIN)
    span = first[PAPERS].makespan_us
    assert span is not None
    assert planners.throughputs(SMALL, KIRIN, PAPERS)[0] == pytest.approx(
        1e6 * len(texts[0].split(",")) / span
    )
    assert min(ratios(answers(SMALL, KIRIN), "pipe-it", "serial")) <= 1.0


def test_more_units_make_queues_shorter_and_bubbles_do_not_tell_latency() -> None:
    (queue,) = statements(phones.figure_2a(SMALL))
    assert queue.holds
    (linear,) = statements(phones.figure_12(SMALL))
    assert not linear.holds


def test_memory_is_that_of_all_weights_where_they_stay_loaded() -> None:
    stage = "serial, cpu_big"
    running, loaded = (phones.usage(stage, policy) for policy in LoadPolicy)
    assert max(used for _, used in running) != max(used for _, used in loaded)


def test_some_units_of_a_problem() -> None:
    problem = on_units(shipped_workload(KIRIN, "resnet50,vgg16"), ("cpu_big", "gpu"))
    assert problem.platform.unit_names == ("cpu_big", "gpu")
    assert problem.interference is not None
    assert problem.interference.slowdown_permille[0][1] == 161
    assert (
        ask(problem, "serial").makespan_us
        == ask(shipped_workload(KIRIN, "resnet50,vgg16"), "serial").makespan_us
    )


def test_two_cores_are_found_where_there_are_two() -> None:
    assert here.cores(shipped_workload("split-kirin990", "bert").platform) is not None
    assert here.cores(shipped_workload(KIRIN, "bert").platform) is None


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        command.main(
            ["--parts", "2a,13,spaces,cases", "--platforms", KIRIN, "--count", "2", "--limit", "0.02"]
        )
        == 0
    )
    shown = capsys.readouterr().out
    for text in ("Fig. 2(a)", "Fig. 13", "449", "gap of native", "estimated phones"):
        assert text in shown, text
