"""Pipelines of models and functions: loaded, cut anywhere, run, and refused with the right words."""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from gapless.api.engines import resolve_engine
from gapless.api.models import models_of, open_model, open_models
from gapless.executor.callables import find_pipeline
from gapless.executor.chained import ChainedModel
from gapless.executor.engines.ort_session import reference_outputs
from gapless.executor.engines.registry import get_engine
from gapless.executor.model import Model
from gapless.executor.pipeline.pipeline import Pipeline
from gapless.executor.pipeline.verify import References, verify
from gapless.formulations.deployment import Deployment
from gapless.formulations.errors import InvalidInputError, InvalidModelError, InvalidPlanError
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.formulations.plan import Chunk
from gapless.formulations.streams import Stream
from gapless.profiler.isolated import attribute
from tests.executor.graph.models import model, node, ocr_model, residual, tiny, value, weights
from tests.executor.pipelines import write

CORE = min(os.sched_getaffinity(0))
PLATFORM = Platform(
    name="here",
    units=tuple(ProcessingUnit(name=name, cores=(CORE,), threads=1) for name in ("a", "b")),
)
EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "ocr.py"

CHAIN = """
from gapless.executor.callable_layers import ModelStep

def doubled(x):
    return 2 * x

def rows(h, x):
    return h[:1] + x.sum(), np.array([x.size], dtype=np.int64)

P = CallableModel(
    name="chain",
    inputs=(TensorSpec(name="x", shape=(3, 4)),),
    layers=(
        CallableLayer(name="doubled", variants={"*": doubled}),
        ModelStep(name="deep", model="open.onnx", outputs={"y": "h"}),
        CallableLayer(name="rows", variants={"*": rows}, inputs=("h", "x"), outputs=("row", "size")),
        ModelStep(name="last", model="sub/tiny.onnx", inputs={"x": "row"}),
        ModelStep(name="again", model="sub/tiny.onnx"),
    ),
    outputs=("last", "again", "size"),
)
"""


def open_ended() -> onnx.ModelProto:
    """Return x (n, 4) -> four products with activations -> y (n, 4)."""
    nodes = []
    for number, (before, after) in enumerate(pairwise(["x", "a", "b", "c", "y"])):
        nodes += [node("MatMul", f"{before} w{number}", f"m{number}"), node("Sigmoid", f"m{number}", after)]
    shapes: dict[str, tuple[int, ...]] = {f"w{number}": (4, 4) for number in range(4)}
    return model(nodes, [value("x", ["n", 4])], [value("y", ["n", 4])], weights(**shapes))


def place(folder: Path, body: str = CHAIN) -> str:
    """Write the models and the file, and return the locator of the pipeline."""
    (folder / "sub").mkdir(exist_ok=True)
    onnx.save(open_ended(), folder / "open.onnx")
    onnx.save(tiny(), folder / "sub" / "tiny.onnx")
    return write(folder, body)


@pytest.fixture
def chain(tmp_path: Path) -> ChainedModel:
    found = open_model(place(tmp_path))
    assert isinstance(found, ChainedModel)
    return found


def by_hand(folder: Path, x: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Run the members one after the other, each by itself."""
    (h,) = reference_outputs((folder / "open.onnx").read_bytes(), {"x": 2 * x}).values()
    last_model = (folder / "sub" / "tiny.onnx").read_bytes()
    (last,) = reference_outputs(last_model, {"x": h[:1] + x.sum()}).values()
    (again,) = reference_outputs(last_model, {"x": last}).values()
    return {"last": last, "again": again, "size": np.array([12])}


def run_in_chunks(
    whole: Model, cuts: list[int], inputs: Mapping[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """Run a pipeline chunk by chunk in this process; between chunks only what is alive at the cut is kept."""
    engine, unit = get_engine("onnxruntime+callable"), ProcessingUnit(name="here")
    slots = dict(inputs)
    for start, stop in pairwise([0, *cuts, len(whole.network.layers)]):
        for artifact in engine.prepare(whole.pieces(start, stop)):
            session = engine.open(artifact, unit)
            session.copy_in([slots[spec.name] for spec in artifact.inputs])
            session.run()
            outputs = [spec.empty() for spec in artifact.outputs]
            session.copy_out(outputs)
            slots |= {spec.name: array for spec, array in zip(artifact.outputs, outputs, strict=True)}
            session.close()
        alive = {t.name for t in whole.network.tensors if t.source < stop <= max(t.targets)}
        slots = {name: array for name, array in slots.items() if name in alive}
        assert set(slots) == alive
    return slots


def test_a_pipeline_is_a_network_of_all_layers(chain: ChainedModel) -> None:
    network = chain.network
    assert network.name == "chain"
    assert [name.partition("/")[0] for name in network.layer_names] == [
        *["doubled", *["deep"] * 4],
        *["rows", "last", "again"],
    ]
    assert chain.sizes == (1, 4, 1, 1, 1)
    tensors = {tensor.name: (tensor.source, tensor.targets) for tensor in network.tensors}
    assert tensors.pop("x") == (-1, (0, 5))
    assert tensors.pop("doubled") == (0, (1,))
    assert tensors.pop("h") == (4, (5,))
    assert tensors.pop("row") == (5, (6,))
    assert tensors.pop("size") == (5, (8,))
    assert tensors.pop("last") == (6, (7, 8))
    assert tensors.pop("again") == (7, (8,))
    assert set(tensors) == {"deep/a", "deep/b", "deep/c"}
    for name, (source, _) in tensors.items():
        assert chain.layer_of(name) == source
    assert chain.layer_of("deep/m2") == 3  # never leaves its layer
    assert chain.layer_of("x") is chain.layer_of("a") is chain.layer_of("deep/x") is None
    assert [spec.name for spec in chain.outputs] == ["last", "again", "size"]
    assert (chain.spec("h").shape, chain.spec("size").dtype) == ((3, 4), "int64")


@pytest.mark.slow
@pytest.mark.parametrize("cuts", [[], [1], [3], [5], [6], [2, 5], [1, 4, 6], [*range(1, 8)]])
def test_wherever_it_is_cut_the_numbers_are_those_of_the_members(tmp_path: Path, cuts: list[int]) -> None:
    chain = open_model(place(tmp_path))
    inputs = chain.sample_inputs(7)
    right = by_hand(tmp_path, inputs["x"])
    reference = chain.reference(inputs, also=["deep/b", "row"])
    assert reference.pop("deep/b").shape == (3, 4)
    assert reference.pop("row").shape == (1, 4)
    for found in (reference, run_in_chunks(chain, cuts, inputs)):
        assert found.keys() == right.keys()
        for name, array in right.items():
            np.testing.assert_allclose(found[name], array, rtol=1e-5, atol=1e-6)


def test_a_chunk_has_one_piece_for_each_member_that_it_touches(chain: ChainedModel) -> None:
    borders = [
        (piece.name, piece.content.kind, [s.name for s in piece.inputs], [s.name for s in piece.outputs])
        for piece in chain.pieces(3, 7)
    ]
    assert borders == [
        ("deep[2:4)", "onnx", ["deep/b"], ["h"]),
        ("rows[0:1)", "callable", ["h", "x"], ["row", "size"]),
        ("last[0:1)", "onnx", ["row"], ["last"]),
    ]
    (last,), (again,) = chain.pieces(6, 7), chain.pieces(7, 8)
    assert last.digest != again.digest  # one file under two names
    with pytest.raises(InvalidPlanError):
        chain.pieces(0, 9)


def test_engines_find_the_layers_of_their_operators(chain: ChainedModel) -> None:
    (piece,) = chain.pieces(1, 5)
    engine = get_engine("mnn")
    (artifact,) = engine.prepare([piece])
    session = engine.open(artifact, ProcessingUnit(name="here"))
    operators = session.operator_times([chain.sample_inputs(0)["x"]], repetitions=2)
    session.close()
    assert operators
    times = attribute(operators, chain.layer_of, layers=range(1, 5))
    assert times is not None
    assert all(times)


@pytest.mark.slow
def test_models_and_functions_run_in_one_worker_each_by_its_own_engine(chain: ChainedModel) -> None:
    assert resolve_engine(None, chain).name == "mnn+callable"
    assert resolve_engine("onnxruntime", chain).name == "onnxruntime+callable"
    chunks = (
        Chunk(network="chain", start=0, stop=3, unit="a"),
        Chunk(network="chain", start=3, stop=8, unit="b"),
    )
    deployment = Deployment(streams=(Stream(name="chain", chunks=chunks),))
    for name in ("mnn+callable", "onnxruntime+callable"):
        with Pipeline(deployment, {"chain": chain}, PLATFORM, get_engine(name)) as pipeline:
            worst = verify(pipeline, References({"chain": chain})).worst_error
            assert worst is not None
            assert worst < 1e-3
            engines = [receipt.engine.partition(" ")[0] for receipt in pipeline.receipts]
        first = "MNN" if name.startswith("mnn") else "ONNX"
        assert engines == ["Python", first, first, "Python", first, first]


@pytest.mark.slow
def test_a_network_finds_its_pipeline_again_and_notices_other_models(tmp_path: Path) -> None:
    network = open_model("mine=" + place(tmp_path), granularity="operator").network
    assert network.name == "mine"
    assert models_of(network).network == network
    onnx.save(tiny(initializers=weights(1, w=(4, 4))), tmp_path / "sub" / "tiny.onnx")
    with pytest.raises(InvalidModelError, match="is not the model that was profiled"):
        models_of(network)


@pytest.mark.slow
def test_a_pipeline_can_be_joined_with_models(tmp_path: Path) -> None:
    joined = open_models([place(tmp_path), f"b={tmp_path / 'sub' / 'tiny.onnx'}"])
    assert [name.partition("/")[0] for name in joined.network.layer_names] == [*["chain"] * 8, "b"]
    assert models_of(joined.network).network == joined.network


def test_built_in_networks_can_be_steps(tmp_path: Path) -> None:
    body = """
from gapless.executor.callable_layers import ModelStep
P = CallableModel(
    name="p",
    inputs=(TensorSpec(name="photo", shape=(1, 3, 224, 224)),),
    layers=(
        ModelStep(name="net", model="squeezenet"),
        CallableLayer(name="best", variants={"*": lambda scores: scores.argmax(axis=1)}),
    ),
)
"""
    chain = open_model(write(tmp_path, body))
    assert [spec.name for spec in chain.outputs] == ["best"]
    assert len(chain.network.layers) > 20


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "shape=(3, 4)",
            "shape=(3, 5)",
            r"step 'deep' .*'doubled', float32 \(3, 5\).*dimension 1 is 4, not 5",
        ),
        (
            'name="x", shape=(3, 4)',
            'name="x", shape=(3, 4), dtype="float64"',
            r"'x' is float32 \(3, 4\), but ",
        ),
        (
            "h[:1] + x.sum()",
            "h[:2]",
            r"step 'last' .*shape x=2,4 contradicts the model: dimension 0 is 1, not 2",
        ),
        (
            'inputs={"x": "row"}',
            'inputs={"z": "row"}',
            r"step 'last' .*the model has no such input; it has x",
        ),
        ('outputs={"y": "h"}', 'outputs={"q": "h"}', r"outputs of the model are 'y': .* is called, not 'q'"),
        ("open.onnx", "lost.onnx", r"'lost\.onnx' is neither a file nor a built-in network"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in CHAIN
    with pytest.raises(InvalidModelError, match=f"(?s)is not valid.*{words}"):
        open_model(place(tmp_path, CHAIN.replace(old, new)))


def test_all_defects_that_can_be_seen_are_listed(tmp_path: Path) -> None:
    body = CHAIN.replace('inputs=("h", "x"), outputs', 'inputs=("x", "x"), outputs')
    body = body.replace('{"y": "h"}', '{"y": "h", "z": "k"}').replace("h[:1]", "h[:2]")
    body = body.replace('"size"),\n)', '"size", "h", "k"),\n)')
    with pytest.raises(InvalidModelError) as caught:
        open_model(place(tmp_path, body))
    assert [problem.partition(" (")[0].partition(":")[0] for problem in caught.value.problems] == [
        "step 'deep'",
        "step 'last'",
    ]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('name="last"', 'name="last/one"', "name of step 'last/one' holds '/'"),
        (', inputs={"x": "row"}', "", "step 'last' has no inputs, and before it come 'row', 'size'"),
        ('inputs={"x": "row"}', 'inputs={"x": "row", "y": "row"}', "step 'last' gives one tensor to several"),
        ('inputs={"x": "row"}', 'inputs={"x": "gone"}', "layer 'last' takes 'gone'"),
        ('model="open.onnx"', "model=3", "model of step 'deep' must be a path"),
        ('inputs={"x": "row"}', 'inputs=("row",)', "inputs of step 'last' must say which tensor"),
        ('("row", "size")', '("row", "again/size")', "'again/size' is called like something inside"),
    ],
)
def test_a_malformed_declaration_is_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in CHAIN
    with pytest.raises(InvalidModelError, match=words):
        open_model(place(tmp_path, CHAIN.replace(old, new)))


def test_wrong_inputs_and_names_are_refused_together(chain: ChainedModel) -> None:
    with pytest.raises(InvalidInputError, match=r"(?s)input 'x' is missing.*no tensor is called 'deep/q'"):
        chain.reference({}, also=["deep/q"])


@pytest.mark.slow
def test_names_inside_control_flow_are_renamed_too(tmp_path: Path) -> None:
    branches = {
        f"{word}_branch": onnx.helper.make_graph(
            [node(op, "x", f"{word}_y")], word, [], [value(f"{word}_y", [3, 4])]
        )
        for word, op in (("then", "Relu"), ("else", "Neg"))
    }
    nodes = [
        node("ReduceSum", "x", "total", keepdims=0),
        node("Greater", "total zero", "up"),
        node("If", "up", "y", **branches),
    ]
    zero = onnx.numpy_helper.from_array(np.array(0, dtype=np.float32), "zero")
    locator = place(tmp_path)
    onnx.save(model(nodes, [value("x", [3, 4])], [value("y", [3, 4])], [zero]), tmp_path / "open.onnx")
    chain = open_model(locator)
    inputs = {"x": np.linspace(-1, 0.5, 12, dtype=np.float32).reshape(3, 4)}
    right = by_hand(tmp_path, inputs["x"])
    np.testing.assert_allclose(run_in_chunks(chain, [1], inputs)["again"], right["again"], rtol=1e-5)


@pytest.mark.slow
def test_text_in_a_photo_is_what_the_three_models_and_the_functions_find_by_hand() -> None:
    chain = open_model(f"{EXAMPLE}:OCR")
    own = vars(find_pipeline(f"{EXAMPLE}:OCR")[1].execute())
    inputs = chain.sample_inputs(3)
    run = {task: ocr_model(task).read_bytes() for task in ("det", "cls", "rec")}
    (likely,) = reference_outputs(run["det"], {"x": own["normalised"](inputs["photo"])}).values()
    lines, boxes, count = own["cut_out"](inputs["photo"], likely)
    (turned,) = reference_outputs(run["cls"], {"x": own["beginnings"](lines)}).values()
    (letters,) = reference_outputs(run["rec"], {"x": own["upright"](lines, turned)}).values()
    right = {"letters": own["most_likely"](letters, count), "boxes": boxes, "count": count}
    assert count == [5]
    found = run_in_chunks(chain, [chain.network.legal_cuts[40], chain.network.legal_cuts[100]], inputs)
    for name, array in right.items():
        np.testing.assert_array_equal(found[name], array)
    assert len(read(right["letters"]) & set(own["TEXTS"])) == 5  # as they were drawn


def read(letters: NDArray[np.int32]) -> set[str]:
    """Return lines of text from the numbers of letters, by the alphabet that is kept in the model."""
    (alphabet,) = (
        entry.value for entry in onnx.load(ocr_model("rec")).metadata_props if entry.key == "character"
    )
    known = ["", *alphabet.splitlines(), " "]
    return {"".join(known[letter] for letter in line).strip() for line in letters} - {""}


def test_residual_networks_stand_behind_functions_too(tmp_path: Path) -> None:
    body = """
from gapless.executor.callable_layers import ModelStep
P = CallableModel(
    name="p",
    inputs=(TensorSpec(name="photo", shape=(12, 12, 3), dtype="uint8"),),
    layers=(
        CallableLayer(name="pixels", variants={"*": lambda p: (p.T[None] / np.float32(255)).copy()}),
        ModelStep(name="net", model="net.onnx"),
    ),
)
"""
    onnx.save(residual(3), tmp_path / "net.onnx")
    chain = open_model(write(tmp_path, body))
    inputs = chain.sample_inputs(1)
    pixels = np.ascontiguousarray(inputs["photo"].T[None] / np.float32(255))
    (right,) = reference_outputs((tmp_path / "net.onnx").read_bytes(), {"x": pixels}).values()
    cuts = list(chain.network.legal_cuts)
    np.testing.assert_allclose(run_in_chunks(chain, cuts, inputs)["net"], right, rtol=1e-4, atol=1e-5)
