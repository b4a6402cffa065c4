"""`gapless requests stream`: tasks one after the other, as a table, as a document and as a picture."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..conftest import Cli

TASKS = ("pixel7a/alexnet-sparse:300", "pixel7a/octree:50")


def test_planned_ahead_and_when_their_turn_comes(cli: Cli, tmp_path: Path) -> None:
    picture = tmp_path / "stream.svg"
    run = cli("requests", "stream", *TASKS, "--profile", "20s", "--idle", "1.5s", "--picture", picture)
    assert run.code == 0
    assert "2 tasks, 350 items on pixel7a, 4 units; simulated" in run.out
    assert "Measured and planned when its turn comes (21.5 s a task)" in run.out
    text = picture.read_text()
    for words in ("1. alexnet-sparse", "2. octree", "profiling", "planned ahead: done after"):
        assert words in text


def test_the_document_has_every_span(cli: Cli) -> None:
    found = cli("requests", "stream", *TASKS, "--profile", "2s", "--json").document
    assert found["format"] == "gapless.stream"
    ahead, waiting = found["ahead"], found["waiting"]
    assert waiting["makespan_us"] > ahead["makespan_us"] + 2 * 2_000_000 - 100_000
    assert [task["items"] for task in ahead["tasks"]] == [[300], [50]]
    assert {span["device"] for span in ahead["spans"]} == {"Little", "Medium", "Big", "GPU"}
    assert sum(span["kind"] == "profiling" for span in waiting["spans"]) == 2 * 4
    assert all(len(gaps) == 1 for gaps in ahead["switch_us"].values())
    assert found["planning"] == {"profile_us": 2_000_000, "idle_us": 0}


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("pixel7a/octree",), "write PROBLEM:ITEMS"),
        (("pixel7a/octree:some",), "write PROBLEM:ITEMS"),
        (("pixel7a/octree:0",), "0 items, must be from 1 to 100,000"),
        (("pixel7a/octree:1", "jetson-orin-nano/octree:1"), "plan all of them for one platform"),
    ],
)
def test_bad_tasks_are_named(cli: Cli, words: tuple[str, ...], text: str) -> None:
    run = cli("requests", "stream", *words)
    assert run.code == 2
    assert text in " ".join(run.err.split())
