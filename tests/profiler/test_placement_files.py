"""Layer graphs in the JSON format of device placement."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import gapless
from gapless.formulations.errors import InvalidInputError
from gapless.profiler.placement_files import import_placement

FILE: dict[str, Any] = {
    "maxSizePerFPGA": 100.0,
    "maxFPGAs": 2,
    "maxCPUs": 1,
    "nodes": [
        {"id": 7, "name": "w", "supportedOnFpga": True, "cpuLatency": 0, "fpgaLatency": 0, "size": 1.0},
        {"id": 1, "supportedOnFpga": 1, "cpuLatency": 0.5, "fpgaLatency": 0.1, "size": 10.5, "colorClass": 3},
        {"id": 2, "supportedOnFpga": True, "cpuLatency": 0.5, "fpgaLatency": 0.12, "size": 0},
        {"id": 3, "supportedOnFpga": False, "cpuLatency": 0.05, "fpgaLatency": 0, "size": 10, "layerId": 9},
        {
            "id": 4,
            "supportedOnFpga": True,
            "cpuLatency": 1e-9,
            "fpgaLatency": 1e-9,
            "size": 0,
            "isBackwardNode": 1,
            "colorClass": 3,
        },
    ],
    "edges": [
        {"sourceId": 7, "destId": 1, "cost": 0.01},
        {"sourceId": 1, "destId": 3, "cost": 0.01, "size": 5},
        {"sourceId": 2, "destId": 3, "cost": 0.02},
        {"sourceId": 1, "destId": 4, "cost": 0.01},
    ],
}


def write(path: Path, **changes: Any) -> Path:
    found = path / "graph.json"
    found.write_text(json.dumps({**FILE, **changes}))
    return found


def test_a_file_is_a_problem(tmp_path: Path) -> None:
    problem = gapless.load_problem(write(tmp_path))
    assert problem.platform.unit_names == ("accelerator0", "accelerator1", "cpu0")
    assert [unit.memory_bytes for unit in problem.platform.units] == [100, 100, None]
    assert problem.network.layer_names == ("w", "node 1", "node 2", "node 3", "node 4")
    rows = problem.costs.of("graph").layer_us
    assert rows[1] == (100_000, 100_000, 500_000)
    assert rows[3] == (None, None, 50_000)
    assert rows[4] == (1, 1, 1)
    assert problem.data.instant == (0,)
    assert problem.data.colours == ((1, 4),)
    assert problem.data.backward == (4,)
    assert problem.data.tensor_us == ((10_000, 10_000, 0), (10_000, 10_000, 0), (20_000, 20_000, 0))
    assert "2 below a microsecond" in problem.costs.provenance.notes
    # One accelerator for each of the two long nodes; the weight stays with its reader.
    assert gapless.plan(problem).objective == 140_000


@pytest.mark.parametrize(
    ("size", "room", "fits"), [(1.9, 3.0, False), (0.3, 0.6, True), (1.5, 2.9999, False)]
)
def test_fractions_of_sizes_count_where_memory_is_short(
    tmp_path: Path, size: float, room: float, fits: bool
) -> None:
    nodes = [
        {"id": number, "supportedOnFpga": True, "cpuLatency": 1, "fpgaLatency": 1, "size": size}
        for number in range(2)
    ]
    changes = {"nodes": nodes, "edges": [], "maxSizePerFPGA": room, "maxFPGAs": 1, "maxCPUs": 0}
    found = gapless.plan(import_placement(write(tmp_path, **changes)))
    assert found.status == ("optimal" if fits else "infeasible")


def test_other_files_are_not_taken_for_it(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"maxFPGAs": 2, "nodes": []}))
    with pytest.raises(InvalidInputError, match=r"gapless\.problem"):
        gapless.load_problem(path)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"maxFPGAs": 0, "maxCPUs": 0}, "nothing to run on"),
        ({"maxFPGAs": -1}, "maxFPGAs is -1"),
        ({"maxFPGAs": 10**15}, "maxFPGAs is 1000000000000000, must be between 0 and 64"),
        ({"maxSizePerFPGA": -5}, "maxSizePerFPGA is -5"),
        ({"nodes": [FILE["nodes"][0], FILE["nodes"][0]]}, "ids of nodes must be unique"),
        ({"nodes": [{**FILE["nodes"][1], "cpuLatency": -1}]}, "cpuLatency of node 1 is -1"),
        ({"nodes": [{"id": 1}]}, "supportedOnFpga"),
        ({"edges": [{"sourceId": 1, "destId": 99, "cost": 0}]}, "names node 99"),
        (
            {"edges": [FILE["edges"][1], {**FILE["edges"][3], "cost": 0.5}]},
            "edges from node 1 have different costs",
        ),
        (
            {"edges": [{"sourceId": 1, "destId": 2, "cost": 0}, {"sourceId": 2, "destId": 1, "cost": 0}]},
            "circle",
        ),
    ],
)
def test_defects_are_named(tmp_path: Path, changes: dict[str, Any], match: str) -> None:
    with pytest.raises(InvalidInputError, match=match):
        import_placement(write(tmp_path, **changes))
