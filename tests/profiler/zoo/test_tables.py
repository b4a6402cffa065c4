"""Networks that are too large for one file, as tables: the true size and work, and nothing in memory."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from gapless.executor.graph.onnx_model import load_onnx
from gapless.formulations.errors import InvalidModelError
from gapless.formulations.network import Network
from gapless.profiler.zoo import tables
from gapless.profiler.zoo.catalog import build, names_in_parts, zoo_entry, zoo_names, zoo_path
from gapless.profiler.zoo.tables import table_of

PUBLISHED = {"vit-large": (304e6, 61.6e9), "vit-huge": (632e6, 167.3e9), "bert-large": (335e6, 167.5e9)}
"""Parameters and multiplications with addition; of BERT for 512 words."""


@pytest.fixture(scope="module", params=sorted(PUBLISHED))
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Network:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GAPLESS_CACHE", str(tmp_path_factory.mktemp("cache")))
        return table_of(request.param)


@pytest.mark.slow
def test_size_and_work_are_those_that_are_published(table: Network) -> None:
    parameters, macs = PUBLISHED[table.name]
    assert sum(layer.weight_bytes for layer in table.layers) / 4 == pytest.approx(parameters, rel=0.002)
    assert all(layer.flops is not None for layer in table.layers)
    assert sum(layer.flops or 0 for layer in table.layers) / 2 == pytest.approx(macs, rel=0.005)


@pytest.mark.slow
def test_one_tensor_crosses_each_legal_cut(table: Network) -> None:
    depth = {"vit-huge": 32}.get(table.name, 24)
    assert len(table.legal_cuts) == 2 * depth
    tokens, width = {"vit-large": (197, 1024), "vit-huge": (257, 1280), "bert-large": (512, 1024)}[table.name]
    assert {table.boundary_bytes[cut] for cut in table.legal_cuts} == {4 * tokens * width}
    for cut in table.legal_cuts:
        assert sum(t.source < cut <= max(t.targets) for t in table.tensors) == 1
    heads_bytes = 4 * 16 * tokens**2  # the scores of attention are alive inside of a block
    assert max(table.working_bytes) > 2 * heads_bytes


@pytest.mark.slow
def test_a_table_is_kept_and_takes_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAPLESS_CACHE", str(tmp_path))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    first = table_of("vit-huge")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400_000  # KiB; its weights: 2.5 GB
    monkeypatch.setattr(tables, "outline", None)  # it is not made a second time
    assert table_of("vit-huge") == first


@pytest.mark.slow
def test_a_table_has_the_layers_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simplification of the file changes nothing that counts."""
    monkeypatch.setenv("GAPLESS_CACHE", str(tmp_path))
    made, opened = table_of("squeezenet"), load_onnx(zoo_path("squeezenet")).network
    assert [layer.weight_bytes for layer in made.layers] == [layer.weight_bytes for layer in opened.layers]
    assert [layer.flops for layer in made.layers] == [layer.flops for layer in opened.layers]
    assert made.boundary_bytes == opened.boundary_bytes


def test_there_is_no_file_of_them() -> None:
    assert set(names_in_parts()) == set(PUBLISHED)
    assert not set(PUBLISHED) & set(zoo_names())
    for name in PUBLISHED:
        assert zoo_entry(name).in_parts
        with pytest.raises(InvalidModelError, match=f"{name}.* is a table without weights.*--platform"):
            build(name)
