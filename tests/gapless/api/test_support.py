"""Who can run what of a model: Figures 9 and 10 of Band, dependencies and the order of a file, sessions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from onnx import NodeProto

from gapless.api import support
from gapless.api.support import model_support
from gapless.executor.engines import registry
from gapless.executor.graph.onnx_model import OnnxModel
from gapless.executor.model import Piece
from gapless.formulations.errors import ConversionError, InvalidInputError, PlacementError
from gapless.formulations.files import PLATFORM, dump
from gapless.formulations.hardware import Platform, ProcessingUnit, UnitKind
from tests.executor.graph.models import load, model, node, value, weights

from ..conftest import Cli

CHAIN = [node("Relu", "x", "a"), node("Sigmoid", "a", "b"), node("Tanh", "b", "c"), node("Erf", "c", "y")]
BRANCHES = [
    node("Relu", "x", "a"),
    node("Tanh", "x", "b"),
    node("Sigmoid", "a", "c"),
    node("Tanh", "b", "d"),
    node("Add", "c d", "y"),
]
"""Two branches, interleaved in the file."""


@pytest.fixture
def platform(tmp_path: Path) -> Path:
    units = (
        ProcessingUnit(name="gpu", unsupported=("Tanh", "Erf")),
        ProcessingUnit(name="npu", unsupported=("Erf",)),
        ProcessingUnit(name="cpu"),
    )
    path = tmp_path / "platform.json"
    path.write_text(dump(Platform(name="figure-9", units=units), PLATFORM))
    return path


def small(nodes: list[NodeProto], folder: Path) -> Path:
    made = model(nodes, [value("x", [1, 8])], [value("y", [1, 8])])
    path = folder / "small.onnx"
    path.write_bytes(made.SerializeToString())
    return path


def opened_chain(folder: Path) -> OnnxModel:
    return load(model(CHAIN, [value("x", [1, 8])], [value("y", [1, 8])]), folder)


def test_figures_9_and_10(cli: Cli, platform: Path, tmp_path: Path) -> None:
    run = cli("tools", "inspect", small(CHAIN, tmp_path), "--support", platform, "--json")
    assert run.code == 0
    found = run.document
    assert [len(operator["units"]) for operator in found["operators"]] == [3, 3, 2, 1]
    assert found["placements"] == 18
    assert [(len(s["operators"]), s["units"]) for s in found["sections"]] == [
        (2, ["gpu", "npu", "cpu"]),
        (1, ["npu", "cpu"]),
        (1, ["cpu"]),
    ]
    assert {(chunk["start"], chunk["stop"]): chunk["units"] for chunk in found["chunks"]} == {
        (0, 1): ["gpu", "npu", "cpu"],
        (1, 2): ["npu", "cpu"],
        (2, 3): ["cpu"],
        (0, 2): ["npu", "cpu"],
        (1, 3): ["cpu"],
        (0, 3): ["cpu"],
    }
    assert (found["file_order_sections"], found["file_order_chunks"]) == (3, 6)
    assert found["loaded"] is None


def test_neighbours_are_those_by_dependencies(platform: Path, tmp_path: Path) -> None:
    found = model_support(
        load(model(BRANCHES, [value("x", [1, 8])], [value("y", [1, 8])]), tmp_path), platform
    )
    assert [section.units for section in found.sections] in (
        [("npu", "cpu"), ("gpu", "npu", "cpu")],
        [("gpu", "npu", "cpu"), ("npu", "cpu"), ("gpu", "npu", "cpu")],
    )
    assert found.file_order_sections > len(found.sections)
    assert found.file_order_chunks > len(found.chunks)


def test_what_people_see(cli: Cli, platform: Path, tmp_path: Path) -> None:
    run = cli("tools", "inspect", small(CHAIN, tmp_path), "--support", platform)
    assert "4 operators in 3 sections, 6 chunks" in run.out
    assert "50.0 %" in run.out  # of all operators, on the GPU
    assert "Tanh 1, Erf 1" in run.out
    assert "all chunks on all units: 10 sessions" in run.out


def test_further_borders(platform: Path, tmp_path: Path) -> None:
    chained = [node("Conv", f"t{i} w", f"t{i + 1}") for i in range(4)]
    chained[0].input[0], chained[-1].output[0] = "x", "y"
    made = model(chained, [value("x", [1, 8, 4, 4])], [value("y", None)], weights(w=(8, 8, 1, 1)))
    opened = load(made, tmp_path)
    assert len(model_support(opened, platform).sections) == 1
    divided = model_support(opened, platform, sections=4)
    assert [len(section.operators) for section in divided.sections] == [1, 1, 1, 1]
    assert len(divided.chunks) == 10


def test_sessions_on_a_phone_within_a_limit(tmp_path: Path) -> None:
    opened = opened_chain(tmp_path)
    found = model_support(opened, "pixel4", sections=2)
    assert found.units == ("cpu0", "cpu1", "gpu", "dsp", "npu")
    assert found.loaded is not None
    assert found.loaded.bytes + found.loaded.dropped_bytes == found.session_bytes
    least = min(chunk.bytes for chunk in found.chunks if chunk.stop - chunk.start == len(found.sections))
    short = model_support(opened, "pixel4", sections=2, session_bytes=least).loaded
    assert short is not None
    assert short.bytes <= least
    assert short.lost_sets > 0


class WithoutErf:
    """An engine that cannot prepare Erf, and opens nothing on what is not made of cores."""

    def prepare(self, pieces: Sequence[Piece]) -> tuple[Piece, ...]:
        if any(b"Erf" in piece.content.read() for piece in pieces):
            raise ConversionError("no Erf")
        return tuple(pieces)

    def open(self, piece: Piece, unit: ProcessingUnit) -> None:
        raise PlacementError(f"{piece.name} does not open on {unit.name}")


def test_engines_are_asked_layer_by_layer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    units = (ProcessingUnit(name="core0", kind=UnitKind.CPU), ProcessingUnit(name="gpu", kind=UnitKind.GPU))
    monkeypatch.setattr(support, "this_device", lambda engine: Platform(name=engine, units=units))
    monkeypatch.setattr(registry, "get_engine", lambda name: WithoutErf())
    nodes = [node("Tanh", "x", "a"), node("MaxPool", "a", "y", kernel_shape=[1, 1])]
    image = model(nodes, [value("x", [1, 8, 4, 4])], [value("y", None)])
    found = model_support(load(image, tmp_path), "trials")
    assert [operator.units for operator in found.operators] == [("core0",), ("core0",)]
    with pytest.raises(InvalidInputError, match="no unit of 'mnn' can run the layers"):
        model_support(opened_chain(tmp_path), "trials")


def test_phones_for_requests_are_listed(cli: Cli) -> None:
    (pixel,) = (
        e for e in cli("list", "problems", "--json").document["coordinated_phones"] if e["name"] == "pixel4"
    )
    assert pixel["units"] == ["cpu0", "cpu1", "gpu", "dsp", "npu"]
    assert "fsrnet" in pixel["networks"]
    assert "ConvTranspose[stride>=4]" in cli("list", "problems").out


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--support", "pixel5"], "did you mean pixel4"),
        (
            ["--support", "PLATFORM", "--session-memory", "10MB"],
            "times, and those of 'figure-9' are not known",
        ),
        (["--session-memory", "10MB"], "give --support PLATFORM"),
        (["--support", "pixel4", "--pieces", "layers"], "give one of them"),
    ],
)
def test_mistakes_are_named(cli: Cli, platform: Path, tmp_path: Path, words: list[str], text: str) -> None:
    asked = [str(platform) if word == "PLATFORM" else word for word in words]
    run = cli("tools", "inspect", small(CHAIN, tmp_path), *asked)
    assert run.code == 2
    assert text in run.err.replace("\n", " ")


def test_an_operator_that_runs_nowhere_is_named(tmp_path: Path) -> None:
    path = tmp_path / "gpu.json"
    path.write_text(
        dump(Platform(name="gpu", units=(ProcessingUnit(name="gpu", unsupported=("Erf",)),)), PLATFORM)
    )
    opened = opened_chain(tmp_path)
    with pytest.raises(InvalidInputError, match="no unit of 'gpu' can run the layers"):
        model_support(opened, path)
