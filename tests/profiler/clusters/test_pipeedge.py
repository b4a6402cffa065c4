"""Files of PipeEdge: what they mean, and what is wrong with damaged ones."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import gapless
from gapless.formulations.cluster import Pipelines
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.files import dump_problem, load_problem
from gapless.formulations.problem import Problem
from gapless.profiler.clusters import pipeedge
from gapless.profiler.clusters.pipeedge import import_pipeedge

MB = 2**20
MODELS: dict[str, Any] = {
    "DummyModel": {"layers": 0, "mem_MB": [], "parameters_in": 0, "parameters_out": []},
    "org/net": {
        "layers": 3,
        "mem_MB": [1.5, 2, 0.25],
        "parameters_in": 1000,
        "parameters_out": [200, 300, 10],
    },
}


def profile(*times_s: float, batch: int = 8, dtype: str = "torch.float32") -> dict[str, Any]:
    return {"batch_size": batch, "dtype": dtype, "time_s": list(times_s)}


TYPES: dict[str, Any] = {
    "Dummy": {"bw_Mbps": 0, "mem_MB": 0, "model_profiles": None},
    "board": {
        "bw_Mbps": 1000,
        "mem_MB": 64,
        "model_profiles": {"org/net": [profile(0.5, 0.25, 0.0000001)]},
    },
    "box": {
        "bw_Mbps": 10.5,
        "mem_MB": 2.5,
        "model_profiles": {"org/net": [profile(1, 0.125, 0.1), profile(9, 9, 9, batch=4)]},
    },
}
DEVICES: dict[str, Any] = {"Dummy": [], "board": ["b0", "b1"], "box": ["10.0.0.7"]}


def written(folder: Path, models: Any = MODELS, types: Any = TYPES, devices: Any = DEVICES) -> list[Path]:
    paths = [folder / name for name in ("models.yml", "device_types.yml", "devices.yml")]
    for path, content in zip(paths, (models, types, devices), strict=True):
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return paths


def imported(folder: Path, *, batch: int | None = 8, dtype: str | None = None, **files: Any) -> Problem:
    return import_pipeedge(*written(folder, **files), model="org/net", batch=batch, dtype=dtype)


def data_of(problem: Problem) -> Pipelines:
    assert isinstance(problem.data, Pipelines)
    return problem.data


def test_numbers_mean_what_pipeedge_means(tmp_path: Path) -> None:
    problem = imported(tmp_path)
    (costs,) = problem.costs.networks
    assert problem.costs.units == ("b0", "b1", "10.0.0.7")
    assert costs.layer_us == (
        (500_000, 500_000, 1_000_000),
        (250_000, 250_000, 125_000),
        (1, 1, 100_000),  # shorter than a microsecond
    )
    assert problem.costs.batch == 8
    assert not problem.costs.provenance.estimated
    assert [layer.weight_bytes for layer in problem.network.layers] == [3 * MB // 2, 2 * MB, MB // 4]
    assert problem.network.boundary_bytes == tuple(4 * 8 * count for count in (1000, 200, 300, 10))
    assert [unit.memory_bytes for unit in problem.platform.units] == [64 * MB - 1] * 2 + [5 * MB // 2 - 1]


def test_hosts_send_with_the_bandwidth_of_the_slower_one(tmp_path: Path) -> None:
    data = data_of(imported(tmp_path))
    speeds = {(link.source, link.target): link.bytes_per_second for link in data.links}
    slow = int(10.5 * MB / 8)
    assert speeds == {
        ("board", "board"): 1000 * MB // 8,
        ("board", "box"): slow,
        ("box", "board"): slow,
        ("box", "box"): slow,
    }
    assert data.types == ("board", "board", "box")
    assert (data.in_slots, data.out_slots, data.overlap) == (2, 2, True)


def test_the_profile_is_chosen(tmp_path: Path) -> None:
    four = imported(tmp_path, batch=4)
    assert four.platform.unit_names == ("10.0.0.7",)  # only this type was profiled so
    assert "without board, which has no such profile" in four.costs.provenance.notes
    with pytest.raises(InvalidInputError, match=r"several profiles .* a batch of 4, torch.float32 with"):
        imported(tmp_path, batch=None)
    with pytest.raises(
        InvalidInputError, match=r"no device type that has hosts has a profile .* of torch.float16"
    ):
        imported(tmp_path, dtype="torch.float16")


def test_half_precision_is_half_the_bytes(tmp_path: Path) -> None:
    types = {
        **TYPES,
        "board": {**TYPES["board"], "model_profiles": {"org/net": [profile(1, 1, 1, dtype="torch.float16")]}},
    }
    problem = imported(tmp_path, types=types, dtype="torch.float16")
    assert problem.network.boundary_bytes[0] == 2 * 8 * 1000


def test_a_short_list_of_outputs_is_repeated(tmp_path: Path) -> None:
    model = {**MODELS["org/net"], "parameters_out": [5, 7]}
    problem = imported(tmp_path, models={"org/net": model})
    assert problem.network.boundary_bytes == tuple(32 * count for count in (1000, 5, 7, 5))


@pytest.mark.slow
def test_one_pipeline_is_what_pipeedge_minimises(tmp_path: Path) -> None:
    problem = gapless.with_pipelines(imported(tmp_path), "one").with_objective("period")
    found = [gapless.plan(problem, backend=name) for name in ("exhaustive", "cpsat", "pulp")]
    # By hand: layer 1 takes 0.5 s on a board, whatever happens; the rest runs beside it.
    assert [(str(each.status), each.objective) for each in found] == [("optimal", 500_000)] * 3
    best = gapless.plan(imported(tmp_path), backend="exhaustive")
    assert best.objective is not None
    assert best.objective < 500_000_000  # nanoseconds between two results of both boards


def test_the_problem_is_a_file(tmp_path: Path) -> None:
    problem = imported(tmp_path)
    path = tmp_path / "problem.json"
    path.write_text(dump_problem(problem))
    assert load_problem(path).fingerprint == problem.fingerprint


def changed(kind: str, **changes: Any) -> dict[str, Any]:
    return {**TYPES, kind: {**TYPES[kind], **changes}}


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no yaml": ({"models": "a: [1"}, "models.yml is not valid YAML"),
    "a list": ({"models": "- a"}, "models.yml holds no models of PipeEdge: it is a list"),
    "deep": ({"models": "[" * 100_000}, "models.yml is not valid YAML"),
    "aliases": ({"devices": "a: &x [b]\nboard: *x"}, "devices.yml uses YAML aliases"),
    "objects": ({"models": "!!python/object/apply:os.system ['true']"}, "models.yml is not valid YAML"),
    "a date": ({"models": {"org/net": "2026-01-01"}}, "org/net"),
    "no model": (
        {"models": {"net": MODELS["org/net"]}},
        "models.yml has no model 'org/net'; choose one of net",
    ),
    "no hosts": ({"devices": {"board": []}}, "devices.yml has no hosts"),
    "unknown type": ({"devices": {"tx2": ["t"]}}, "device_types.yml has no device type 'tx2'"),
    "numbers for hosts": ({"devices": {"board": [7]}}, "board[0]: Input should be a valid string, got 7"),
    "missing key": (
        {"models": {"org/net": {"layers": 3}}},
        "models.yml is not valid as models of PipeEdge:",
    ),
    "lengths": (
        {"models": {"org/net": {**MODELS["org/net"], "mem_MB": [1]}}},
        "mem_MB has 1 entries, needs one for each of the 3 layers",
    ),
    "times": (
        {"types": changed("board", model_profiles={"org/net": [profile(1, 2)]})},
        "board: time_s has 2 entries, the model has 3 layers",
    ),
    "negative": (
        {"types": changed("board", model_profiles={"org/net": [profile(1, -2, 1)]})},
        "board: time_s has negative or very large entries",
    ),
    "a huge number": ({"types": changed("board", mem_MB=1e308)}, "board: mem_MB is 1e+308, must be from 0"),
    "bandwidth": ({"types": changed("board", bw_Mbps=0)}, "board: bw_Mbps is 0, must be above 0"),
    "no number": ({"types": changed("board", mem_MB=float("nan"))}, "device_types.yml is not valid as"),
    "dtype": (
        {
            "types": changed("board", model_profiles={"org/net": [profile(1, 1, 1, dtype="int3")]}),
            "dtype": "int3",
        },
        "board: dtype 'int3' is not known; known are float16",
    ),
    "hosts twice": ({"devices": {"board": ["b0"], "box": ["b0"]}}, "found twice: 'b0'"),
    "host like a type": ({"devices": {"board": ["box"], "box": ["b0"]}}, "called like another device type"),
}


@pytest.mark.parametrize("case", WRONG)
def test_damaged_files_are_refused_with_what_is_wrong(case: str, tmp_path: Path) -> None:
    files, message = WRONG[case]
    with pytest.raises(InvalidInputError) as caught:
        imported(tmp_path, **files)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 2000


TAGS = (
    '!!bool "zz"', '!!int "x"', '!!int ""', '!!timestamp "x"', "!!timestamp 2001-14-14", '!!float "y"',
    '!!binary "@@"', "!!omap 3", "!!omap [1]", "!!set [1]", "!!pairs [1, 2]", "!!null {a: 1}", "!!map 3",
    "!!seq {a: 1}", "!!str [1]", "!!foo 3", "{[1, 2]: 3}", "{<<: 3}", "2001-99-99", "!!value {a: 1}",
)  # fmt: skip


@pytest.mark.parametrize("tagged", TAGS)
@pytest.mark.parametrize("text", ["TAGGED", "org/net: TAGGED", "{layers: TAGGED}"])
def test_a_tag_that_does_not_fit_is_an_error_of_the_file(text: str, tagged: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"models\.yml"):
        imported(tmp_path, models=text.replace("TAGGED", tagged))


def test_files_without_end_meet_a_limit_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidInputError, match=r"models\.yml has 27000005 bytes, more than the 4194304"):
        imported(tmp_path, models="a: [1" + 9_000_000 * ", 1")
    with pytest.raises(InvalidInputError, match=r"line 2: a value of 6001 characters, more than the 1000"):
        imported(tmp_path, models="a: 1\nb: 1" + 2000 * ":59")
    monkeypatch.setattr(pipeedge, "MOST_SECONDS", -1.0)
    with pytest.raises(InvalidInputError, match=r"models\.yml takes longer to read than the -1 s"):
        imported(tmp_path)


def test_a_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = written(tmp_path)
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(InvalidInputError, match=r"PyYAML is not installed.*gapless\[pipeedge\]"):
        import_pipeedge(*files, model="org/net")
