"""How plans of groups are shown: steps, tiles, what they read and do twice, copies apart, cuts of groups."""

from __future__ import annotations

from dataclasses import replace

from gapless.formulations.costs import CostTable
from gapless.formulations.history import is_message
from gapless.formulations.judge import score
from gapless.formulations.operation import operation_of
from gapless.formulations.problem import Problem
from gapless.formulations.simulate import simulate
from gapless.view.explaining.explain import explain
from gapless.view.formulations.cooperation import PRESENTER
from gapless.view.page.page import report_page
from gapless.view.page.subjects import subject
from gapless.view.page.timeline import timeline
from gapless.view.page.utilisation import chunk_table
from tests.formulations.cooperation.test_judge import plan, two_convolutions
from tests.gapless.view.page.markup import texts

from .test_pipelines import shown

GROUP = plan((0, 1, "a+b"), (1, 2, "b"))


def board() -> Problem:
    """Return two convolutions on three units of a board that copy for 100 us; the second does not split."""
    problem = two_convolutions()
    data, costs = problem.data, problem.costs
    nodes = (*data.spatial.nodes[:-1], replace(data.spatial.nodes[-1], splits=(False, False)))
    (own,) = costs.networks
    copies = ((100, 100, 100),) * 3
    (table,) = (replace(own, transfer_in_us=copies, transfer_out_us=copies),)
    return replace(
        problem,
        costs=CostTable(units=costs.units, networks=(table,)),
        data=replace(
            data,
            spatial=replace(data.spatial, nodes=nodes),
            devices=replace(data.devices, links=()),
            steps=True,
        ),
    )


def test_steps_are_shown_one_below_the_other() -> None:
    problem = board()
    lines = shown(*PRESENTER.plan_parts(problem, GROUP, score(problem, GROUP)), width=110)
    assert lines[0] == "1 chunk over 2 of 3 units: 263.2 requests/s"
    cells = [line.split() for line in lines[2:] if line]
    assert cells[0][:4] == ["layers", "unit", "rows", "computes"]
    assert [row[:3] for row in cells[1:4]] == [
        ["0-0", "a", "0-2"],
        ["b", "3-9", "1.600"],
        ["1-1", "b", "all"],
    ]
    assert "step takes" in lines[2]
    assert dict(PRESENTER.facts(problem))["messages"].startswith("none: results lie in shared memory")
    assert PRESENTER.pace_words(problem, GROUP) == "a+b sets the pace with 3.800 ms."


def test_the_page_shows_tiles_and_copies() -> None:
    problem = board()
    about = subject(problem, GROUP, explained=None)
    rows = texts(chunk_table(about))
    assert [row[-3:] for row in rows] == [
        ["rows 0-2", "rows 0-3 of 10", "0.0 %"], ["rows 3-9", "rows 2-9 of 10", "0.0 %"], ["all", "-", "-"]
    ]  # fmt: skip
    chart = timeline(about)
    assert chart is not None
    assert chart.copied
    assert "copies from and to shared memory" in report_page([about])
    trace = simulate(problem, GROUP, requests=1)
    assert not any(is_message(event, trace.streams) for event in trace.events)
    assert {event.parts_us[::2] for event in trace.events} == {(100.0, 100.0)}
    assert operation_of(problem).chunk_us(problem, about.deployment) == ((1400, 1600, 2200),)


def test_cuts_are_between_groups_and_steps_are_no_cuts() -> None:
    assert not explain(board(), GROUP).cuts
    (cut,) = explain(two_convolutions(), plan((0, 1, "a+b"), (1, 2, "c"))).cuts
    assert (cut.before, cut.after, cut.boundary) == ("a+b", "c", 1)
