"""Pieces as layers, and what `gapless tools inspect` says about tiles and pieces."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from gapless.api.models import open_model
from gapless.api.pieces import pieces_of
from gapless.cli.base.exits import ExitCode
from gapless.executor.engines.cache import default_cache
from gapless.executor.graph.choices import Granularity
from gapless.executor.graph.onnx_model import OnnxModel, load_onnx
from gapless.formulations.errors import InvalidModelError
from gapless.formulations.spatial import check_pieces
from gapless.solvers.pieces import finding
from tests.executor.graph.models import residual, run_in_chunks
from tests.numbers import relative_error

from ..conftest import Cli


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GAPLESS_CACHE", str(tmp_path / "cache"))
    onnx.save(residual(), tmp_path / "residual.onnx")
    return tmp_path / "residual.onnx"


@pytest.mark.slow
def test_pieces_are_layers_in_a_chain(path: Path) -> None:
    model = open_model(path, granularity="piece")
    assert isinstance(model, OnnxModel)
    spatial = model.spatial()
    pieces = pieces_of(spatial)
    assert len(model.network.layers) == pieces.count > 1
    assert not list(check_pieces(spatial, pieces.labels))
    for tensor in model.network.tensors:  # outputs of the network may leave early
        if tensor.source >= 0:
            assert {target - tensor.source for target in tensor.targets} <= {1, pieces.count - tensor.source}
    flops = sum(layer.flops or 0 for layer in model.network.layers)
    assert flops == sum(layer.flops or 0 for layer in open_model(path).network.layers)


@pytest.mark.slow
def test_chunks_of_pieces_give_right_numbers(path: Path) -> None:
    model = open_model(path, granularity="piece")
    inputs = model.sample_inputs(1)
    found = run_in_chunks(model, list(range(1, len(model.network.layers))), inputs)
    for name, right in model.reference(inputs).items():
        assert relative_error(found[name], right) < 1e-5


@pytest.mark.slow
def test_pieces_are_found_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = open_model(path, granularity="piece")
    (kept,) = [entry for entry in default_cache().entries() if entry.suffix == ".pieces"]
    monkeypatch.setattr(finding, "exact", None)  # whoever asks for it again fails
    assert open_model(path, granularity="piece").network == first.network
    kept.path.write_bytes(b"damaged")
    with pytest.raises(TypeError):
        open_model(path, granularity="piece")


def test_nobody_finds_pieces_below_the_solvers(path: Path) -> None:
    with pytest.raises(InvalidModelError, match="another --granularity"):
        load_onnx(path, granularity=Granularity.PIECE)


@pytest.mark.slow
def test_inspect_shows_tiles(path: Path, cli: Cli) -> None:
    run = cli("tools", "inspect", path, "--split", "3", "--json")
    assert run.code == ExitCode.OK
    first = [row for row in run.document["operators"] if row["op_type"] == "Conv"][2]
    assert (first["stride"], first["extent"], first["obstacle"]) == (1, 3, None)
    assert first["redundancy"] > 0
    assert first["fused"] > 1
    assert "read again" in cli("tools", "inspect", path, "--split", "3", "--axis", "columns").out
    assert cli("tools", "inspect", path, "--split", "1").code == ExitCode.USAGE


@pytest.mark.slow
def test_inspect_shows_pieces(path: Path, cli: Cli) -> None:
    run = cli("tools", "inspect", path, "--pieces", "exact", "--json")
    assert run.code == ExitCode.OK
    assert run.document["proven"] is True
    assert sum(piece["extra_flops"] for piece in run.document["pieces"]) == sum(run.document["costs"])
    assert "no chain is better" in cli("tools", "inspect", path, "--pieces", "exact").out
    assert "not proven" in cli("tools", "inspect", path, "--pieces", "blocks").out
    assert cli("tools", "inspect", path, "--pieces", "magic").code == ExitCode.USAGE


@pytest.mark.slow
def test_python_functions_have_no_maps(cli: Cli) -> None:
    run = cli("tools", "inspect", "octree", "--split", "2")
    assert run.code == ExitCode.USAGE
    assert "no ONNX model" in run.err
