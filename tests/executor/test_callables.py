"""Pipelines of Python functions: loaded, tried on a sample, cut, and refused with the right words."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gapless.executor.callable_layers import CallableLayer, CallableModel
from gapless.executor.callables import load_callable
from gapless.executor.engines.callable_engine import CallableEngine
from gapless.executor.model import Model, TensorSpec
from gapless.formulations.errors import ExecutionError, InvalidInputError, InvalidModelError, InvalidPlanError
from gapless.formulations.hardware import ProcessingUnit, UnitKind
from tests.executor.pipelines import FIRST_LINE, TWO, one_layer, write

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "edges.py"
CPU = ProcessingUnit(name="cpu", kind=UnitKind.CPU)
X = TensorSpec(name="x", shape=(2, 3))


def same(x: NDArray[Any]) -> NDArray[Any]:
    return x


def test_a_pipeline_becomes_a_network(tmp_path: Path) -> None:
    locator = write(tmp_path)
    model: Model = load_callable(locator)
    network = model.network
    assert (network.name, network.layer_names, network.legal_cuts) == ("two", ("doubled", "split"), (1,))
    assert {(t.name, t.bytes, t.source, t.targets) for t in network.tensors} == {
        ("x", 24, -1, (0, 1)),
        ("doubled", 24, 0, (1,)),
        ("sum", 24, 1, (2,)),
        ("rows", 8, 1, (2,)),
    }
    assert network.boundary_bytes == (24, 48, 32)
    assert [layer.op_types for layer in network.layers] == [("double",), ("split",)]
    (ref,) = network.models
    assert ref.locator == locator
    assert [(spec.name, spec.shape) for spec in model.outputs] == [("sum", (2, 3)), ("rows", (2,))]


def test_numbers_are_those_of_the_functions(tmp_path: Path) -> None:
    model = load_callable(write(tmp_path))
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    found = model.reference({"x": x}, also=("doubled", "x"))
    np.testing.assert_array_equal(found["sum"], 3 * x)
    np.testing.assert_array_equal(found["rows"], 2 * x.sum(axis=1))
    np.testing.assert_array_equal(found["doubled"], 2 * x)
    found["x"][:] = 0  # a copy
    assert x.max() == 5
    with pytest.raises(InvalidInputError, match=r"(?s)input 'x' is missing.*no tensor is called 'y'"):
        model.reference({}, also=("y",))


def test_pieces_take_and_give_what_crosses_their_borders(tmp_path: Path) -> None:
    model = load_callable(write(tmp_path))
    (first,), (second,), (whole,) = model.pieces(0, 1), model.pieces(1, 2), model.pieces(0, 2)
    borders = [([s.name for s in p.inputs], [s.name for s in p.outputs]) for p in (first, second, whole)]
    assert borders == [
        (["x"], ["doubled"]),
        (["x", "doubled"], ["sum", "rows"]),
        (["x"], ["sum", "rows"]),
    ]
    assert len({first.digest, second.digest, whole.digest}) == 3
    assert second.content.kind == "callable"
    assert json.loads(second.content.read())["start"] == 1
    for start, stop in ((0, 0), (1, 1), (-1, 1), (0, 3), (2, 1)):
        with pytest.raises(InvalidPlanError, match="is no chunk"):
            model.pieces(start, stop)


def test_digests_follow_the_content(tmp_path: Path) -> None:
    before = load_callable(write(tmp_path))
    again = load_callable(write(tmp_path), name="other")
    assert again.network.name == "other"
    assert again.network.models == before.network.models
    assert again.pieces(0, 1)[0].digest == before.pieces(0, 1)[0].digest
    changed = load_callable(write(tmp_path, TWO + "\n# another comment\n"))
    assert changed.network.models != before.network.models
    assert changed.pieces(0, 1)[0].digest != before.pieces(0, 1)[0].digest
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    moved = load_callable(write(elsewhere))
    assert moved.network.models[0].digest == before.network.models[0].digest
    assert moved.pieces(0, 1)[0].digest != before.pieces(0, 1)[0].digest


def test_samples_are_the_users_or_random(tmp_path: Path) -> None:
    model = load_callable(write(tmp_path))
    one, two = model.sample_inputs(1), model.sample_inputs(2)
    np.testing.assert_array_equal(one["x"], model.sample_inputs(1)["x"])
    assert (one["x"] != two["x"]).any()
    assert ((one["x"] >= 0) & (one["x"] < 1)).all()
    sampled = "def sample(seed):\n    return {'x': np.full((2, 3), seed, 'float32')}\n"
    own = load_callable(write(tmp_path, sampled + one_layer("def f(x): return x + 1", more="sample=sample,")))
    assert own.sample_inputs(7)["x"].max() == 7


def test_random_samples_fit_every_type(tmp_path: Path) -> None:
    source = (
        "TYPES = ('float16', 'float64', 'int8', 'uint8', 'int64', 'uint16', 'bool')\n"
        "P = CallableModel(name='p', inputs=tuple(TensorSpec(name=t, shape=(50,), dtype=t) for t in TYPES),\n"
        "    layers=(CallableLayer(name='all', variants={'*': lambda *a: np.array(len(a))}),))\n"
    )
    arrays = load_callable(write(tmp_path, source)).sample_inputs(3)
    assert {name: array.dtype.name for name, array in arrays.items()} == {name: name for name in arrays}
    assert all(len(np.unique(array)) > 1 for array in arrays.values())
    assert arrays["int8"].min() >= 0


def test_what_functions_print_does_not_reach_standard_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    noisy = "print('loading')\n" + one_layer("def f(x):\n    print('running')\n    return x + 1")
    model = load_callable(write(tmp_path, noisy))
    model.reference(model.sample_inputs(0))
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "loading" in printed.err
    assert "running" in printed.err


def test_a_file_finds_its_neighbours_and_hides_them_from_others(tmp_path: Path) -> None:
    found = []
    for number in (1, 2):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "helper_of_pipelines.py").write_text(f"NUMBER = {number}\n")
        body = "import helper_of_pipelines as h\n" + one_layer("def f(x): return x * h.NUMBER")
        found.append(load_callable(write(folder, body)))
    x = np.ones((2, 3), dtype=np.float32)
    assert [model.reference({"x": x})["only"].max() for model in found] == [1, 2]
    assert "helper_of_pipelines" not in sys.modules
    assert not [path for path in sys.path if path.startswith(str(tmp_path))]


def test_a_file_is_executed_as_if_python_ran_it(tmp_path: Path) -> None:
    body = (
        "from dataclasses import dataclass\n"
        "@dataclass\nclass Weights:\n    scale: float = 3.0\n"
        "assert Weights.__annotations__ == {'scale': float}, 'a __future__ import leaks in'\n"
        "assert __file__.endswith('pipeline.py') and __name__ != '__main__'\n"
    )
    model = load_callable(write(tmp_path, body + one_layer("def f(x): return x * Weights().scale")))
    assert model.reference({"x": np.ones((2, 3), dtype=np.float32)})["only"].max() == 3


def test_variants_are_chosen_by_kind() -> None:
    layer = CallableLayer(name="l", variants={"gpu": same, "*": same})
    assert [layer.variant_for(kind) for kind in ("gpu", "cpu")] == ["gpu", "*"]
    assert layer.reference_variant == "*"
    only = CallableLayer(name="l", variants={"gpu": same})
    assert only.variant_for("cpu") is None
    assert only.reference_variant == "gpu"


def layer(name: str = "a", variants: Any = None, inputs: Any = (), outputs: Any = ()) -> CallableLayer:
    found = {"*": same} if variants is None else variants
    return CallableLayer(name=name, variants=found, inputs=inputs, outputs=outputs)


BAD_SPEC = TensorSpec(name="x", shape=(0, 2), dtype="float31")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"layers": ()}, "layers are missing"),
        ({"layers": (same,)}, "layers must hold CallableLayer or ModelStep, found function"),
        ({"layers": (layer(variants={}),)}, "variants of layer 'a' must be functions"),
        ({"layers": (layer(variants={"gpuu": same}),)}, "'gpuu' of layer 'a' is no kind of unit: cpu, gpu"),
        ({"layers": (layer(variants={"*": 3}),)}, "is no function: int"),
        ({"layers": (layer("x"),)}, "tensor names must be unique, but found twice: 'x'"),
        ({"layers": (layer(), layer())}, "layer names must be unique"),
        ({"layers": (layer(inputs=("b",)),)}, "takes 'b', which comes in nowhere before it"),
        ({"layers": (layer(outputs=("b", "c")),), "outputs": ("b",)}, "'c' is used by no layer"),
        ({"layers": (layer(outputs="bc"),)}, "outputs of layer 'a' must be a tuple, got str"),
        ({"layers": (layer(""),)}, "name of a layer is empty"),
        ({"outputs": ("z",)}, "output 'z' is made by no layer"),
        ({"inputs": [X]}, "inputs must be a tuple, got list"),
        ({"inputs": ()}, "inputs are missing"),
        ({"inputs": (BAD_SPEC,)}, r"(?s)sizes must be at least 1.*dtype is 'float31'"),
        ({"name": "", "layers": 3}, r"(?s)name is empty.*layers must be a tuple, got int"),
    ],
)
def test_what_does_not_fit_together_is_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidModelError, match=words):
        CallableModel(**{"name": "p", "inputs": (X,), "layers": (layer(),), **fields})


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("def f(:\n", rf"pipeline.py, line {FIRST_LINE}: "),
        ("1 / 0\n", rf"pipeline.py, line {FIRST_LINE} raised ZeroDivisionError"),
        ("import sys; sys.exit(3)\n", rf"line {FIRST_LINE} raised SystemExit: 3"),
        ("import no_such_module_here\n", "No module named 'no_such_module_here'"),
        (
            "Q = CallableModel(name='', inputs=(X,), layers=())",
            r"(?s)pipeline\.py: .*name is empty",
        ),
        ("", "'P' is not in it; it has none"),
        ("P = 3\n", "'P' is int, not a CallableModel"),
        (TWO.replace("P =", "Q ="), "'P' is not in it; it has Q"),
        (
            one_layer("def f(x):\n    return x.no"),
            rf"P: layer 'only' raised AttributeError.*line {FIRST_LINE + 1}\)",
        ),
        (one_layer("def f(x):\n    x += 1\n    return x"), "must not write into their inputs"),
        (one_layer("def f(x, y): return x"), "layer 'only' raised TypeError"),
        (one_layer("def f(x): exit(4)"), "layer 'only' raised SystemExit"),
        (one_layer("def f(x): return None"), "layer 'only' returned NoneType"),
        (one_layer("def f(x): return [1, 2]"), "layer 'only' returned int"),
        (one_layer("def f(x): return x, x"), "returned 2 arrays, its outputs are 'only'"),
        (one_layer("def f(x): return ()"), "returned 0 arrays"),
        (one_layer("def f(x): return x[:0]"), r"gives 'only' as float32 \(0, 3\)"),
        (one_layer("def f(x): return x.astype(complex)"), "gives 'only' as complex128"),
        (
            one_layer("def f(x): return x[0]", outputs="(TensorSpec(name='y', shape=(2, 3)),)"),
            r"output 'y' of layer 'only' is float32 \(3,\), must be float32 \(2, 3\)",
        ),
        (
            one_layer("def f(x): return x.astype(int)", outputs="(TensorSpec(name='y', shape=(2, 3)),)"),
            r"is int64 \(2, 3\), must be float32",
        ),
        (
            one_layer("COUNT = []\ndef f(x):\n    COUNT.append(1)\n    return x + len(COUNT)"),
            "gives another 'only' for the same inputs",
        ),
        (one_layer("def f(x): return x", more="sample=lambda seed: 1 / 0,"), r"sample\(0\) raised ZeroDiv"),
        (one_layer("def f(x): return x", more="sample=lambda seed: 5,"), r"sample\(0\) must return a dict"),
        (one_layer("def f(x): return x", more="sample=lambda seed: {'x': 5},"), "'x' of sample.0. is int"),
        (one_layer("def f(x): return x", more="sample=5,"), "sample must be a function of a seed"),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, body: str, words: str) -> None:
    with pytest.raises(InvalidModelError, match=words):
        load_callable(write(tmp_path, body))
    assert not [path for path in sys.path if path.startswith(str(tmp_path))]


def test_bad_locators_are_refused(tmp_path: Path) -> None:
    for locator in ("pipeline.py", ":P", "pipeline.py:", "pipeline.py:1x"):
        with pytest.raises(InvalidModelError, match=r"write path\.py:NAME"):
            load_callable(locator)
    for path in (tmp_path / "no.py", tmp_path, Path(os.devnull)):
        with pytest.raises(InvalidModelError, match="there is no file"):
            load_callable(f"{path}:P")
    (tmp_path / "binary.py").write_bytes(b"\x00\xff\xfe")
    with pytest.raises(InvalidModelError, match=r"binary\.py"):
        load_callable(f"{tmp_path}/binary.py:P")


def test_the_example_finds_edges() -> None:
    model = load_callable(f"{EXAMPLE}:EDGES")
    assert model.network.layer_names == ("grey", "smooth", "gradient", "thinned", "strongest")
    found = model.reference(model.sample_inputs(1))
    (count,) = found["count"]
    points = found["points"]
    assert 1000 < count < len(points)
    assert (points[:count] >= 0).all()
    assert (points[count:] == -1).all()
    with pytest.raises(ExecutionError):
        model.reference({"photo": np.zeros((2, 2, 3), dtype=np.uint8)})


@st.composite
def random_pipelines(draw: st.DrawFn) -> str:
    """Return the source of a pipeline with side branches, and with several outputs a layer."""
    known, unused, lines = ["x"], ["x"], []
    for index in range(draw(st.integers(1, 6))):
        taken = draw(st.lists(st.sampled_from(known), min_size=1, max_size=3))
        given = [f"t{index}_{number}" for number in range(draw(st.integers(1, 2)))]
        lines.append(
            f"CallableLayer(name='l{index}', inputs={tuple(taken)}, outputs={tuple(given)}, variants={{'*':\n"
            f"    lambda *a: tuple({index + 2} * sum(a) + n for n in range({len(given)}))}}),"
        )
        unused = [name for name in unused if name not in taken] + given
        known += given
    if "x" in unused:
        lines.insert(0, "CallableLayer(name='first', outputs=('x0',), variants={'*': lambda x: x + 1}),")
        unused = ["x0", *(name for name in unused if name != "x")]
    return f"P = CallableModel(name='p', inputs=(X,), layers=({' '.join(lines)}), outputs={tuple(unused)})\n"


@pytest.mark.slow
@settings(max_examples=40)
@given(source=random_pipelines(), seed=st.integers(0, 99), data=st.data())
def test_chained_pieces_give_the_numbers_of_the_whole(source: str, seed: int, data: st.DataObject) -> None:
    engine = CallableEngine()
    with tempfile.TemporaryDirectory() as folder:
        model = load_callable(write(Path(folder), source))
        count = len(model.network.layers)
        cuts = data.draw(st.sets(st.sampled_from(range(1, count)))) if count > 1 else set()
        borders = [0, *sorted(cuts), count]
        tensors = dict(model.sample_inputs(seed))
        right = model.reference(tensors, also=[tensor.name for tensor in model.network.tensors])
        for start, stop in pairwise(borders):
            (piece,) = model.pieces(start, stop)
            (artifact,) = engine.prepare([piece], folder=Path(folder))
            session = engine.open(artifact, CPU)
            session.copy_in([tensors[spec.name] for spec in artifact.inputs])
            session.run()
            outputs = [spec.empty() for spec in artifact.outputs]
            session.copy_out(outputs)
            session.close()
            tensors |= {spec.name: array for spec, array in zip(artifact.outputs, outputs, strict=True)}
            alive = {t.name for t in model.network.tensors if t.source < stop <= max(t.targets)}
            assert alive <= tensors.keys()
    for name, array in tensors.items():
        np.testing.assert_array_equal(array, right[name])
    assert {spec.name for spec in model.outputs} <= tensors.keys()
