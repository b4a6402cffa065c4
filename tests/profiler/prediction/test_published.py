"""Files of executed plans: gapless's own, and those of others; everything wrong is named at once."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gapless.formulations.errors import InvalidInputError, SchemaVersionError
from gapless.formulations.files import dump
from gapless.formulations.judge import score
from gapless.formulations.plan import Chunk, Plan
from gapless.profiler.prediction.executions import EXECUTIONS, ExecutedPlan, charged_us
from gapless.profiler.prediction.published import load_executions

from .executed import LAYERS, UNITS, Document, document, executions, written


def test_what_was_written_is_what_is_read(tmp_path: Path) -> None:
    made = document()
    found = load_executions(written(made, tmp_path, "my device.json"))
    assert found.network.name == "my device"
    assert found.platform.unit_names == UNITS
    assert [table.provenance.method for table in found.tables] == ["isolated", "heavy"]
    assert found.tables[1].networks[0].layer_us[2][1] == round(1000 * made["heavy_ms"][2][1])
    schedule, executed = made["schedules"][3], found.executed[3]
    assert executed.period_us == pytest.approx(1000 * schedule["interval_ms"])
    assert executed.chunk_us == pytest.approx([1000 * ms for ms in schedule["chunk_mean_ms"]])
    assert [chunk.unit for chunk in executed.plan.chunks] == [c["unit"] for c in schedule["chunks"]]
    assert executed.plan.chunks[0].stop == schedule["chunks"][0]["layers"][-1]


def test_gaplesss_own_files_are_read_too(tmp_path: Path) -> None:
    found = executions(document(), tmp_path)
    path = tmp_path / "own.json"
    path.write_text(dump(found, EXECUTIONS))
    assert load_executions(path) == found


def test_chunks_in_any_order_keep_their_times(tmp_path: Path) -> None:
    made = document()
    turned = json.loads(json.dumps(made))
    for schedule in turned["schedules"]:
        schedule["chunks"].reverse()
        schedule["chunk_mean_ms"].reverse()
    assert executions(turned, tmp_path) == executions(made, tmp_path)


@pytest.mark.parametrize("missing", ["isolated_ms", "heavy_ms", "source", "units"])
def test_one_table_is_enough(missing: str, tmp_path: Path) -> None:
    made = document()
    del made[missing]
    found = executions(made, tmp_path)
    assert len(found.executed) == len(made["schedules"])
    assert len(found.tables) == (1 if missing.endswith("_ms") else 2)


def test_unknown_times_of_chunks_and_unknown_keys_are_allowed(tmp_path: Path) -> None:
    made = document()
    made["device"] = {"anything": 1}
    del made["schedules"][0]["chunk_mean_ms"], made["schedules"][0]["runs"]
    made["schedules"][1]["chunk_mean_ms"][0] = None
    found = executions(made, tmp_path)
    assert [bool(one.chunk_us) for one in found.executed[:3]] == [False, False, True]


def test_layers_that_a_unit_cannot_run(tmp_path: Path) -> None:
    made = document()
    gpu = UNITS.index("gpu")
    for method in ("isolated_ms", "heavy_ms"):
        made[method][0][gpu] = None
    made["schedules"] = [s for s in made["schedules"] if s["chunks"][0]["unit"] != "gpu"]
    found = executions(made, tmp_path)
    assert found.tables[0].networks[0].layer_us[0][gpu] is None
    for one in found.executed:
        assert score(found.problem("interpolated"), one.plan).period_us == pytest.approx(
            one.period_us, rel=1e-3
        )


def test_a_time_that_rounds_to_nothing_still_takes_a_microsecond(tmp_path: Path) -> None:
    made = document()
    made["isolated_ms"][0][0] = 0.0001
    assert executions(made, tmp_path).tables[0].networks[0].layer_us[0][0] == 1


def _set(*path: Any) -> Callable[[Document], None]:
    """Return what replaces one value of a document; the last one is the new value."""
    *way, last, value = path

    def change(made: Document) -> None:
        place: Any = made
        for step in way:
            place = place[step]
        place[last] = value

    return change


def _drop(*path: Any) -> Callable[[Document], None]:
    *way, last = path

    def change(made: Document) -> None:
        place: Any = made
        for step in way:
            place = place[step]
        del place[last]

    return change


ONE = {"unit": "big", "layers": [1, 2]}

WRONG: dict[str, tuple[Callable[[Document], None], str]] = {
    "ragged": (_drop("heavy_ms", 2, 1), "heavy_ms[2] has 2 entries, columns has 3"),
    "short": (_drop("heavy_ms", 4), "isolated_ms has 5 layers, heavy_ms has 4"),
    "null in one": (_set("heavy_ms", 1, 2, None), "isolated_ms[1] and heavy_ms[1] are null for different"),
    "zero": (_set("isolated_ms", 0, 0, 0), "isolated_ms[0][0] is 0.0, must be a time greater than 0"),
    "negative": (_set("isolated_ms", 1, 0, -3.5), "isolated_ms[1][0] is -3.5"),
    "huge": (_set("isolated_ms", 1, 0, 1e30), "isolated_ms[1][0] is 1e+30"),
    "text": (_set("isolated_ms", 1, 0, "3"), "isolated_ms[1][0]: "),
    "no table": (lambda made: made.update(isolated_ms=None, heavy_ms=None), "are missing"),
    "empty table": (_set("heavy_ms", []), "heavy_ms is empty"),
    "unit twice": (_set("columns", 1, "big"), "columns must be unique"),
    "no columns": (_drop("columns"), "columns: missing"),
    "seconds": (_set("units", "seconds"), "units is 'seconds', must be 'milliseconds'"),
    "no schedules": (_set("schedules", []), "schedules are missing"),
    "unknown unit": (_set("schedules", 0, "chunks", 0, "unit", "npu"), "chunks[0].unit is 'npu'"),
    "gap": (_drop("schedules", 0, "chunks", 0), "schedules[0] runs no layer 1"),
    "overlap": (
        _set("schedules", 0, "chunks", [ONE, {"unit": "gpu", "layers": [2, 3, 4, 5]}]),
        "twice layer 2",
    ),
    "unit again": (
        _set("schedules", 0, "chunks", [ONE, {"unit": "big", "layers": [3, 4, 5]}]),
        "found twice: 'big'",
    ),
    "skipped": (
        _set("schedules", 0, "chunks", 0, "layers", [1, 3]),
        ".layers is [1, 3], must be consecutive",
    ),
    "no layers": (_set("schedules", 0, "chunks", 0, "layers", []), ".layers is []"),
    "beyond": (_set("schedules", 0, "chunks", -1, "layers", [4, 5, 6]), "there is no layer 6"),
    "layer zero": (_set("schedules", 0, "chunks", 0, "layers", [0, 1]), "there is no layer 0"),
    "too many times": (_set("schedules", 0, "chunk_mean_ms", [1.0] * 9), "has 9 times, the schedule has"),
    "zero interval": (_set("schedules", 0, "interval_ms", 0), "schedules[0].interval_ms is 0.0"),
    "no interval": (_drop("schedules", 0, "interval_ms"), "schedules[0].interval_ms: missing"),
    "zero chunk": (_set("schedules", 0, "chunk_mean_ms", 0, 0.0), "chunk_mean_ms[0] is 0.0"),
    "no runs": (_set("schedules", 0, "runs", 0), "schedules[0].runs is 0, must be at least 1"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_named_with_its_place(case: str, tmp_path: Path) -> None:
    change, message = WRONG[case]
    made = document()
    change(made)
    with pytest.raises(InvalidInputError) as caught:
        load_executions(written(made, tmp_path))
    assert message in str(caught.value)
    assert "made_up.json" in str(caught.value)


def test_a_layer_on_a_unit_that_cannot_run_it(tmp_path: Path) -> None:
    made = document()
    unit = made["schedules"][0]["chunks"][0]["unit"]
    for method in ("isolated_ms", "heavy_ms"):
        made[method][0][UNITS.index(unit)] = None
    with pytest.raises(InvalidInputError, match=f"'{unit}' cannot run layer 1: the tables say null"):
        load_executions(written(made, tmp_path))


def test_all_defects_at_once(tmp_path: Path) -> None:
    made = document()
    made["schedules"][1]["interval_ms"] = -1
    made["schedules"][2]["chunks"][0]["unit"] = "npu"
    made["schedules"][5]["chunks"].pop()
    with pytest.raises(InvalidInputError) as caught:
        load_executions(written(made, tmp_path))
    for place in ("schedules[1]", "schedules[2]", "schedules[5]"):
        assert place in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"columns": [NaN]}', '{"columns": 1, "columns": 2}'])
def test_other_files_are_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(InvalidInputError, match=r"other\.json"):
        load_executions(path)


def test_files_of_other_kinds_and_missing_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text('{"format": "gapless.plan", "version": 1}')
    with pytest.raises(SchemaVersionError, match=r"no gapless\.executions file"):
        load_executions(path)
    with pytest.raises(InvalidInputError, match="cannot read"):
        load_executions(tmp_path / "missing.json")


def test_own_files_are_checked_as_strictly(tmp_path: Path) -> None:
    whole = json.loads(dump(executions(document(), tmp_path), EXECUTIONS))
    path = tmp_path / "own.json"
    for change, message in [
        (_set("executed", 0, "period_us", -1.0), "must be greater than 0"),
        (_set("executed", 0, "chunk_us", [1.0]), "1 times of chunks"),
        (_set("executed", 0, "plan", "chunks", 0, "unit", "npu"), "no such unit"),
        (_set("executed", 0, "plan", "chunks", -1, "stop", LAYERS - 1), "executed[0]"),
        (_set("tables", []), "tables are missing"),
        (_set("executed", []), "executed are missing"),
        (_set("tables", 1, "provenance", "method", "isolated"), "found twice: 'isolated'"),
        (_set("tables", 1, "networks", 0, "layer_us", 0, 0, None), "the tables differ"),
    ]:
        changed = json.loads(json.dumps(whole))
        change(changed)
        path.write_text(json.dumps(changed))
        with pytest.raises(InvalidInputError) as caught:
            load_executions(path)
        assert message in str(caught.value)


def test_infinity_is_no_time(tmp_path: Path) -> None:
    made = document()
    made["schedules"][0]["interval_ms"] = 12345
    path = tmp_path / "infinite.json"
    path.write_text(json.dumps(made).replace("12345", "1e999"))
    with pytest.raises(InvalidInputError, match="1e999 is not a number"):
        load_executions(path)


def test_skipped_layers_and_single_runs_are_read(tmp_path: Path) -> None:
    made = document()
    plain = executions(made, tmp_path)
    schedule = made["schedules"][3]
    schedule["skipped_layers"], schedule["run_us"] = [1], [4000.0, 5000.0]
    schedule["chunks"][0]["layers"] = list(range(1, 3 + 1))
    schedule["chunks"][1:] = [{"unit": "gpu", "layers": [4, 5]}]
    schedule["chunks"][0]["unit"], schedule["chunk_mean_ms"] = "big", [3.0, 2.0]
    found = executions(made, tmp_path)
    one = found.executed[3]
    assert (one.skipped_layers, one.run_us, one.runs) == ((0,), (4000.0, 5000.0), 2)
    problem = found.problem("isolated")
    rows = problem.costs.networks[0].layer_us
    assert charged_us(problem, one) == [
        (rows[1][0] or 0) + (rows[2][0] or 0),
        (rows[3][2] or 0) + (rows[4][2] or 0),
    ]
    assert charged_us(problem, plain.executed[0])[0] > 0
    again = tmp_path / "own.json"
    again.write_text(dump(found, EXECUTIONS))
    assert load_executions(again) == found
    old = json.loads(dump(plain, EXECUTIONS))
    for entry in old["executed"]:
        entry.pop("skipped_layers", None)
    again.write_text(json.dumps(old))
    assert load_executions(again) == plain


def test_strange_skipped_layers_are_refused(tmp_path: Path) -> None:
    made = document()
    made["schedules"][0]["skipped_layers"] = [LAYERS + 1]
    with pytest.raises(InvalidInputError, match=r"schedules\[0\].skipped_layers has 6, which no chunk has"):
        executions(made, tmp_path)
    made = document()
    made["schedules"][0]["skipped_layers"] = list(range(1, LAYERS + 1))
    with pytest.raises(InvalidInputError, match="ran no layer"):
        executions(made, tmp_path)


def test_a_chunk_of_a_billion_layers_is_not_counted_through() -> None:
    plan = Plan(chunks=(Chunk(network="n", start=0, stop=10**9, unit="u"),))
    tracemalloc.start()
    with pytest.raises(InvalidInputError, match="skipped_layers has 1000000000"):
        ExecutedPlan(plan=plan, period_us=1.0, skipped_layers=(3, 10**9))
    assert tracemalloc.get_traced_memory()[1] < 10**6
    tracemalloc.stop()
