"""The sections of a report: what they say follows from what is known, and nothing else."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from gapless.answers.blocks import Section, Sentence, Shown, Table, Tone, kept
from gapless.answers.charts import Bars, Plane
from gapless.answers.tuning import predicted_chart
from gapless.executor.engine import PlacementReceipt
from gapless.executor.runner import Budget
from gapless.executor.tuning.candidates import CandidateKind
from gapless.formulations.history import Usage
from gapless.formulations.scores import Violation
from gapless.solvers.sources import StartMode
from gapless.view.page.contents import answers, heat_maps, memory, origin, race, reasoning, receipts
from gapless.view.page.headline import headline, standing
from gapless.view.page.played import achieved, predicted_pace_us, trace_account
from gapless.view.page.subject import Subject
from gapless.view.page.utilisation import chunk_table, utilisation
from gapless.view.presenter import presenter_of
from gapless.view.terminal.blocks import blocks_view
from tests.gapless.view.page import samples
from tests.gapless.view.page.markup import among, column, texts


def sentence(subject: Subject) -> str:
    return next(one.text for one in headline(subject) if isinstance(one, Sentence))


def labels_of(subject: Subject) -> list[str]:
    (figures,) = (block for block in headline(subject) if isinstance(block, Table))
    return [column.title for column in figures.columns]


def broken_rules(subject: Subject) -> list[str]:
    (alert,) = (block for block in headline(subject) if isinstance(block, Section))
    return [one.text for one in among(alert.blocks, Sentence)]


def test_the_pace_is_what_the_judge_and_the_measurement_say() -> None:
    subject = samples.measured()
    assert subject.score is not None
    assert subject.measurement is not None
    assert predicted_pace_us(subject) == subject.score.period_us
    found = achieved(subject)
    assert found is not None
    assert (found.pace_us, found.source) == (subject.measurement.period_us, "execution")
    batch = samples.workload()
    assert batch.predicted is not None
    assert predicted_pace_us(batch) == batch.predicted.makespan_us


@pytest.mark.slow
@pytest.mark.parametrize("name", ["measured", "replicas", "steady", "workload"])
def test_a_trace_alone_tells_nearly_the_same_as_the_measurement(name: str) -> None:
    subject = samples.SAMPLES[name]()
    quiet = samples.runner(subject.problem, 0)
    measured = quiet.measure(subject.deployment, Budget(requests=40))
    told = trace_account(quiet.trace(subject.deployment, requests=40))
    assert told is not None
    truth = measured.period_us if measured.makespan_us is None else measured.makespan_us.median
    assert told.pace_us == pytest.approx(truth, rel=0.02)
    for unit in measured.units:
        assert told.busy_us[unit.unit] == pytest.approx(unit.busy_us, rel=0.05)
    found = achieved(replace(subject, measurement=None))
    assert found is not None
    assert found.source == "trace"


def test_a_trace_of_one_request_has_no_period() -> None:
    subject = samples.measured()
    assert subject.measured is not None
    one = replace(subject.measured, events=tuple(e for e in subject.measured.events if e.request == 0))
    assert trace_account(one) is None
    bare = replace(subject, measured=one, measurement=None)
    assert "measured" not in sentence(bare)


def test_the_sentence_names_who_runs_where_and_how_fast() -> None:
    words = sentence(samples.measured())
    assert words.startswith("alexnet-sparse in 4 chunks on Big, GPU, Little and Medium of pixel7a gives")
    assert "7.648 ms (predicted)" in words
    assert "sets the pace" not in words, "the explanation says it"
    alone = sentence(replace(samples.measured(), explanation=None))
    assert "Little sets the pace with 7.648 ms; the other 3 units in use are busy for 68.3 %" in alone
    assert sentence(samples.workload()).startswith("A workload of 5 requests (yolov4, bert and")
    assert "ends after" in sentence(samples.workload())
    assert sentence(samples.side_by_side()).startswith("3 replicas of alexnet-sparse on Little")
    assert "A baseline wins: no plan is faster beyond the noise" in sentence(samples.raced())


def test_what_a_plan_breaks_is_said() -> None:
    subject = samples.small()
    assert subject.score is not None
    broken = replace(subject.score, violations=(Violation(rule="max_units", message="too many"),))
    assert broken_rules(replace(subject, score=broken)) == ["max_units: too many"]
    assert broken_rules(subject) == []


def test_the_standing_is_proved_bounded_or_beaten() -> None:
    subject = samples.measured()
    assert standing(subject).kind == "good"
    alone = replace(subject, explanation=None)
    assert standing(alone).text == (
        "Proved by native, exhaustive: no valid one has less period among plans with "
        "at most one chunk per unit."
    )
    assert standing(replace(alone, answers=())).label == "not proved"
    first = alone.answers[0]
    weak = replace(first, bound=7000, status="feasible")
    assert standing(replace(alone, answers=(weak,))).label == f"gap {100 * (7648 - 7000) / 7648:.1f} %"
    better = replace(first, objective=7000, bound=7000)
    found = standing(replace(subject, answers=(better,)))
    assert (found.kind, found.label) == ("bad", "not the best")
    assert standing(samples.side_by_side()).label == "no plan"


def test_utilisation_is_busy_time_over_the_period() -> None:
    subject = samples.measured()
    found = utilisation(subject)
    assert found is not None
    assert subject.score is not None
    assert subject.measurement is not None
    measured = {unit.unit: unit.busy_us for unit in subject.measurement.units}
    for row, busy in zip(found.rows, subject.score.busy_us, strict=True):
        assert busy is not None
        shares = [track.end for track in row.tracks]
        assert shares == pytest.approx(
            [
                100 * busy / subject.score.period_us,
                100 * measured[row.name] / subject.measurement.period_us,
            ],
            abs=0.01,
        )
    assert [row.name for row in found.rows if row.tag == "busiest"] == ["Little"]
    assert column(chunk_table(subject), "predicted") == ["5.225 ms", "7.411 ms", "7.648 ms", "7.179 ms"]
    assert column(chunk_table(subject), "difference")[0] == "-13.6 %", "4.51 ms measured"


def test_chunks_have_the_times_of_the_race_where_nothing_else_was_measured() -> None:
    subject = samples.raced()
    assert subject.tuning is not None
    assert subject.tuning.winner is not None
    found = chunk_table(subject)
    times = [f"{time / 1000:.2f} ms" for time in subject.tuning.winner.chunk_us]
    assert column(found, "measured") == times
    assert set(column(found, "of that copies")) == {"-"}


def test_chunks_of_a_workload_have_times_alone_and_beside_others() -> None:
    subject = samples.workload()
    found = chunk_table(subject)
    assert subject.predicted is not None
    assert len(found.rows) == len(subject.predicted.events)
    differ = [a != b for a, b in zip(column(found, "alone"), column(found, "predicted"), strict=True)]
    assert sum(differ) == sum(event.slowdown_us > 0 for event in subject.predicted.events)


def test_the_race_as_scatter_and_table() -> None:
    subject = samples.raced()
    found = list(race(subject))
    result = subject.tuning
    (scatter,) = among(found, Plane)
    _, quality, candidates, *_ = among(found, Table)
    assert result is not None
    assert len(scatter.marks) == 2 * len(result.rows)
    assert [series.name for series in scatter.series] == ["table isolated", "table interpolated"]
    assert sum(mark.ring for _, mark in scatter.marks) == 2
    hollow = sum(row.candidate.kind is CandidateKind.BASELINE for row in result.rows)
    assert sum(mark.hollow for _, mark in scatter.marks) == 2 * hollow
    axes = scatter.across, scatter.upwards
    assert all(
        axis.low < value < axis.high
        for _, mark in scatter.marks
        for axis, value in zip(axes, (mark.x, mark.y), strict=True)
    )
    assert len(candidates.rows) == len(result.rows)
    assert [row.tone is Tone.STRONG for row in candidates.rows] == [True] + [False] * (len(result.rows) - 1)
    second = replace(subject, deployment=result.rows[1].candidate.deployment)
    *_, candidates, _ = among(race(second), Table)
    assert [row.tone is Tone.STRONG for row in candidates.rows[:3]] == [False, True, False]
    pearson = [entry.pearson for entry in result.quality]
    assert column(quality, "Pearson") == ["-" if r is None else f"{r:.3f}" for r in pearson]
    of_one = predicted_chart(result, ["isolated"])
    assert of_one is not None
    assert [series.name for series in of_one.series] == ["plan", "baseline"], "colours, not hollow marks"
    assert not any(mark.hollow for _, mark in of_one.marks)
    (ideal,) = scatter.guides
    assert all(x == y for x, y in ideal.points)


def test_a_race_that_nobody_finished_has_no_scatter() -> None:
    subject = samples.raced()
    assert subject.tuning is not None
    rows = tuple(replace(row, comparable_us=None, ratio=None) for row in subject.tuning.rows)
    found = list(race(replace(subject, tuning=replace(subject.tuning, rows=rows))))
    assert among(found, Sentence)
    assert among(found, Plane) == []
    assert list(race(samples.small())) == []


def test_answers_with_everything_that_can_go_wrong() -> None:
    found = list(answers(samples.workload()))
    backends = among(found, Table)[0]
    assert column(backends, "backend") == ["native", "cpsat", "z3", "pulp"]
    assert column(backends, "status") == [
        "FEASIBLE",
        "FEASIBLE",
        "NO ANSWER",
        "FAILED",
    ]
    assert column(backends, "gap") == ["26.27 %", "23.60 %", "-", "-"]
    assert "the best bound here, 901.000 ms, which the start of cpsat proved" in backends.legend
    assert "No backend has a proof. Bounds are of" in among(found, Sentence)[1].text
    (ranges,) = among(found, Bars)
    tracks = [track for bar in ranges.rows for track in bar.tracks]
    assert (tracks[2].plan, tracks[2].bound) == (None, None)
    assert tracks[1].plan == ranges.across.high
    assert tracks[0].bound == ranges.across.low
    still = tracks[0].parts[0]
    assert (still.start, still.start + still.length) == (tracks[0].bound, tracks[0].plan)
    assert list(answers(samples.small())) == []
    failed = replace(samples.workload(), answers=samples.workload().answers[-1:])
    assert among(answers(failed), Sentence)[0].text == "No backend has a plan or a proof."
    cold = replace(samples.workload().answers[1], start=StartMode.NONE)
    pair = replace(samples.workload(), answers=(samples.workload().answers[1], cold))
    shown = among(answers(pair), Table)[0]
    assert column(shown, "backend") == ["cpsat", "cpsat (cold)"]
    assert column(shown, "plan by") == ["itself", "itself"]
    assert column(shown, "bound by") == ["the start", "the start"]


@pytest.mark.parametrize(
    ("capacity", "drawn", "words"),
    [
        (None, False, "not known"),
        (150, True, "66.7 % of the 150 B"),
        (90, True, "111.1 %"),
        (10**9, False, "far"),
    ],
)
def test_memory_against_the_capacity(capacity: int | None, drawn: bool, words: str) -> None:
    subject = samples.small()
    platform = replace(subject.problem.platform, memory_bytes=capacity)
    usage = Usage(steps=((0, 40), (10, 100), (20, 0)), while_bytes=(100,))
    found = memory(replace(subject, memory=usage, problem=replace(subject.problem, platform=platform)))
    (chart,) = among(found, Plane)
    assert words in chart.words
    peak, *limits = (line.points[0][1] or 0 for line in chart.guides)
    assert len(limits) == drawn
    assert all((limit > peak) is (capacity == 150) for limit in limits)
    assert all(0 < value < chart.upwards.high for value in (peak, *limits))


def test_memory_steps_are_drawn_once_a_pixel_column() -> None:
    subject = samples.long()
    usage = Usage(steps=tuple((time, 1 + time % 7) for time in range(100_000)), while_bytes=(7,))
    (chart,) = among(memory(replace(subject, memory=usage)), Plane)
    ((line,),) = (series.lines for series in chart.series)
    assert len(line.points) <= 2 * 2001 + 2
    assert line.points[0] == (0, 0)
    assert line.points[-1][0] == pytest.approx(chart.across.high)
    assert max(y or 0 for _, y in line.points) == 7


def test_the_heat_map_outlines_the_chunks() -> None:
    (found,) = heat_maps(samples.small())
    chosen = [
        next(unit for unit, cell in zip(found.columns, row.cells, strict=True) if cell.framed)
        for row in found.rows
    ]
    assert chosen == ["Big", "GPU", "GPU", "GPU", "Little", "Medium", "Medium", "Medium", "Medium"]
    edges = ["".join(cell.edges for cell in row.cells) for row in found.rows]
    assert edges == ["tb", "t", "", "b", "tb", "t", "", "", "b"]
    levels = [cell.level for row in found.rows for cell in row.cells if cell.level is not None]
    assert 0 < min(levels) < 0.1
    assert max(levels) == 1


def test_the_heat_map_says_where_layers_cannot_run_and_is_cut() -> None:
    yolo, *_ = heat_maps(samples.workload())
    stuck = [cell for row in yolo.rows for cell in row.cells if cell.level is None]
    assert stuck
    assert all(cell.text == "" for cell in stuck)
    assert any(total.endswith("cannot run") for total in yolo.totals)
    few = heat_maps(samples.workload(), most=120)
    assert [len(one.rows) for one in few] == [40, 40, 40]
    assert few[0].hidden == 111 - 40
    some = {cell.framed for row in few[2].rows for cell in row.cells}
    assert some <= {"", "all", "some"}


def test_reasons() -> None:
    subject = samples.measured()
    found = kept(reasoning(subject), Shown.PAGE)
    proved, other, *_ = among(found, Sentence)
    cuts, units, *_ = among(found, Table)
    assert proved.tone is Tone.GOOD
    assert column(cuts, "cut") == [
        "after 0 (conv1)",
        "after 3 (pool2)",
        "after 4 (conv3)",
    ]
    assert column(units, "used") == ["yes"] * 4
    assert "(+2.8 %)" in other.text
    assert list(reasoning(samples.long())) == []
    _, units, *_ = among(reasoning(samples.workload()), Table)
    assert column(units, "cannot run")[0].startswith("84 layers: ")


def receipt(**changes: object) -> PlacementReceipt:
    good = PlacementReceipt(
        unit="big",
        piece="net[0:3]",
        engine="mnn 3.2",
        asked_backend="cpu",
        granted_backend="cpu",
        asked_threads=2,
        granted_threads=2,
        asked_cores=(4, 5),
        granted_cores=(4, 5),
    )
    return replace(good, **changes)  # type: ignore[arg-type]


def test_receipts_mark_what_was_not_granted_and_what_is_emulated() -> None:
    subject = samples.measured()
    assert subject.measurement is not None

    def shown(*given: PlacementReceipt) -> Subject:
        assert subject.measurement is not None
        return replace(subject, measurement=replace(subject.measurement, receipts=given))

    good, _ = receipts(shown(receipt()))
    assert good == Sentence(" All sessions were granted as asked.", Tone.GOOD, lead="as asked")
    found = list(receipts(shown(receipt(), receipt(unit="gpu", granted_threads=1, quota_permille=500))))
    ((bad,), (table,)) = among(found, Sentence), among(found, Table)
    assert bad.tone is Tone.BAD
    assert "1 of 2 sessions" in bad.text
    assert "gpu is emulated: a quota of 50 %" in bad.text
    assert column(table, "threads") == ["2", "asked 2, got 1"]
    assert column(table, "granted") == ["as asked", "threads: asked for 2, got 1"]
    assert list(receipts(samples.small())) == []


def test_the_origin_names_problem_tables_and_files() -> None:
    subject = samples.measured()
    about, costs, *_ = origin(subject)
    facts = dict(texts(about))
    assert subject.problem.fingerprint in facts["problem"]
    assert facts["objective"] == "least period, then gapness"
    assert facts["files"] == "plan.json"
    assert column(costs, "method") == ["heavy"]
    about, costs, *_ = origin(samples.workload())
    assert column(costs, "table") == ["costs", "interference"]
    assert "estimated" in column(costs, "method")[0]
    assert "5 requests, batch" in dict(texts(about))["workload"]


def test_a_request_that_waits_is_not_compared_with_one_that_does_not() -> None:
    labels = labels_of(samples.measured())
    assert "Latency with full slots" in labels
    assert "Unqueued latency" in labels
    assert "Latency" not in labels
    batch = labels_of(samples.workload())
    assert "Latency from arrival" in batch


@pytest.mark.slow
@pytest.mark.parametrize("name", ["measured", "workload", "steady", "replicas", "raced"])
def test_no_unit_is_busier_than_all_of_its_time(name: str) -> None:
    found = utilisation(samples.SAMPLES[name]())
    assert found is not None
    assert max(track.end for row in found.rows for track in row.tracks) <= 100


def test_the_page_says_the_shares_that_the_terminal_says() -> None:
    subject = samples.measured()
    plan = subject.plan
    assert plan is not None
    assert subject.score is not None
    out = io.StringIO()
    parts = presenter_of(subject.problem).plan_parts(subject.problem, plan, subject.score)
    Console(file=out, width=140).print(blocks_view(parts))
    found = utilisation(subject)
    assert found is not None
    shares = [row.tracks[0].text for row in found.rows if row.tracks]
    assert shares
    assert all(share in out.getvalue() for share in shares)
