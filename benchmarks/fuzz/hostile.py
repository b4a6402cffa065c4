"""Models that are made to take all time or memory: `python -m benchmarks.fuzz.hostile` shows what they take.

Each is opened by `gapless tools inspect`, with the limits that everybody has. Peak memory is that of the
larger of the two processes, the command and the child in which it opens the file.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from .models import numbers, value, weight, written


def _line(nodes: Sequence[NodeProto], weights: Sequence[TensorProto] = (), **more: object) -> bytes:
    """Return a model from x (1, 4) to y (1, 4)."""
    return written(nodes, [value("x", 1, 4)], [value("y", 1, 4)], weights, **more)


def exploding_functions(depth: int = 31) -> bytes:
    """Return functions that each call the next one twice."""
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    functions = []
    for level in range(depth):
        domain, called = ("own", f"F{level + 1}") if level + 1 < depth else ("", "Relu")
        calls = [helper.make_node(called, [a], [b], domain=domain) for a, b in ("ab", "bc")]
        functions.append(helper.make_function("own", f"F{level}", ["a"], ["c"], calls, opsets))
    return _line([helper.make_node("F0", ["x"], ["y"], domain="own")], functions=functions)


def doubled_constant(times: int = 36) -> bytes:
    """Return a constant that is joined with itself again and again."""
    nodes = [helper.make_node("Concat", [f"c{i}"] * 2, [f"c{i + 1}"], axis=0) for i in range(times)]
    nodes.append(helper.make_node("ReduceSum", [f"c{times}"], ["s"], keepdims=0))
    return _line([*nodes, helper.make_node("Add", ["x", "s"], ["y"])], [weight("c0", 4)])


def endless_loop(turns: int = 10**13) -> bytes:
    """Return a loop over constants, which folding executes."""
    inputs = [value("i", kind=TensorProto.INT64), value("go", kind=TensorProto.BOOL), value("v", 1)]
    outputs = [value("again", kind=TensorProto.BOOL), value("w", 1)]
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["again"]), helper.make_node("Add", ["v", "one"], ["w"])],
        "body",
        inputs,
        outputs,
        [weight("one", 1)],
    )
    constants = [numpy_helper.from_array(np.array(turns), "turns"), weight("start", 1)]
    constants.append(numpy_helper.from_array(np.array(1, dtype="bool"), "true"))
    loop = helper.make_node("Loop", ["turns", "true", "start"], ["end"], body=body)
    return _line([loop, helper.make_node("Add", ["x", "end"], ["y"])], constants)


def made_of_shape(op_type: str, inputs: Sequence[str], *constants: TensorProto) -> bytes:
    """Return a constant that an operator makes large from a few numbers."""
    nodes = [
        helper.make_node(op_type, inputs, ["huge"]),
        helper.make_node("ReduceMax", ["huge"], ["m"], keepdims=0),
    ]
    cast = helper.make_node("Cast", ["m"], ["f"], to=TensorProto.FLOAT)
    return _line([*nodes, cast, helper.make_node("Add", ["x", "f"], ["y"])], constants)


def _scalars(*given: int) -> list[TensorProto]:
    return [numpy_helper.from_array(np.array(each), f"k{place}") for place, each in enumerate(given)]


def chain(count: int = 10_000) -> bytes:
    """Return a chain of operators."""
    names = ["x", *(f"t{i}" for i in range(count - 1)), "y"]
    return _line([helper.make_node("Relu", [a], [b]) for a, b in pairwise(names)])


def branches(count: int = 3000) -> bytes:
    """Return parallel branches."""
    nodes = [helper.make_node("LeakyRelu", ["x"], [f"b{i}"], alpha=i / count) for i in range(count)]
    return _line([*nodes, helper.make_node("Sum", [f"b{i}" for i in range(count)], ["y"])])


def products(count: int = 1500) -> bytes:
    """Return a chain of products with small weights of one shape, which may all be equal."""
    nodes = [
        helper.make_node("MatMul", [f"t{i}" if i else "x", f"w{i}"], [f"t{i + 1}"]) for i in range(count)
    ]
    weights = [numpy_helper.from_array(np.full((4, 4), i, "float32"), f"w{i}") for i in range(count)]
    return _line([*nodes, helper.make_node("Relu", [f"t{count}"], ["y"])], weights)


def nested(depth: int = 28) -> bytes:
    """Return control flow inside of control flow, as deep as protobuf reads."""
    graph = _arm([helper.make_node("Neg", ["x"], ["o"])])
    leaf = _arm([helper.make_node("Abs", ["x"], ["o"])])
    for _ in range(depth):
        graph = _arm([helper.make_node("If", ["q"], ["o"], then_branch=graph, else_branch=leaf)])
    zero = numpy_helper.from_array(np.array(0, "float32"), "zero")
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["m"], keepdims=0),
        helper.make_node("Greater", ["m", "zero"], ["q"]),
        *graph.node,
        helper.make_node("Relu", ["o"], ["y"]),
    ]
    return _line(nodes, [zero])


def _arm(nodes: Sequence[NodeProto]) -> GraphProto:
    return helper.make_graph(nodes, "arm", [], [value("o", 1, 4)])


def unknown_type() -> bytes:
    """Return a model that gives a tensor an element type which does not exist."""
    model = ModelProto.FromString(chain(3))
    model.graph.value_info.append(value("t0", 1, 4, kind=999))
    content: bytes = model.SerializeToString()
    return content


def claimed_weight() -> bytes:
    """Return a weight that claims more bytes than all machines hold."""
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2**31, 2**31])
    return _line([helper.make_node("Add", ["x", "w"], ["y"])], [tensor])


def empty_nodes(count: int = 20_000_000) -> bytes:
    """Return nodes of two bytes each, which take a hundred when they are read."""
    header: bytes = ModelProto(ir_version=8).SerializeToString()
    return header + _field(7, b"\x0a\x00" * count)


def _field(number: int, content: bytes) -> bytes:
    size, length = len(content), bytearray()
    while size > 0x7F:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([number << 3 | 2, *length, size]) + content


def long_names(letters: int = 20_000_000) -> bytes:
    """Return names of many letters, with marks that turn the direction of writing."""
    name = "\u202e" + "n" * letters
    return _line(
        [helper.make_node("Relu", ["x"], [name], name=name), helper.make_node("Relu", [name], ["y"])]
    )


HOSTILE: Mapping[str, Callable[[], bytes]] = {
    "functions that inline 2^31 times": exploding_functions,
    "a constant doubled 36 times": doubled_constant,
    "a loop of 10^13 turns": endless_loop,
    "ConstantOfShape of 10^12": lambda: made_of_shape("ConstantOfShape", ["n"], numbers("n", 10**6, 10**6)),
    "Expand to 10^12": lambda: made_of_shape(
        "Expand", ["c", "n"], weight("c", 1, 1), numbers("n", 10**6, 10**6)
    ),
    "Tile to 10^12": lambda: made_of_shape("Tile", ["c", "n"], weight("c", 1, 1), numbers("n", 10**6, 10**6)),
    "Pad to 10^12": lambda: made_of_shape(
        "Pad", ["c", "n"], weight("c", 1, 1), numbers("n", 10**6, 10**6, 0, 0)
    ),
    "Range to 10^12": lambda: made_of_shape("Range", ["k0", "k1", "k2"], *_scalars(0, 10**12, 1)),
    "10,000 operators in a chain": chain,
    "3,000 parallel branches": branches,
    "1,500 small weights": products,
    "control flow, 28 deep": nested,
    "an unknown element type": unknown_type,
    "a weight of 2^64 bytes": claimed_weight,
    "20 million empty nodes": empty_nodes,
    "names of 20 million letters": long_names,
}
"""What was seen to harm some reader of models, or might."""


def taken(path: Path) -> tuple[int, float, float, str]:
    """Return exit code, seconds, peak memory in MiB, and what `gapless tools inspect` complained of."""
    started = time.monotonic()
    with tempfile.TemporaryFile() as said:
        words = [sys.executable, "-m", "gapless", "tools", "inspect", str(path)]
        child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=said)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - started
        said.seek(0)
        words = said.read().decode(errors="replace").replace(str(path), "FILE").split()
    return child.returncode, seconds, usage.ru_maxrss / 1024, " ".join(words)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1: something else than an answer or a refusal."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz.hostile")
    parser.add_argument("--only", metavar="WORD", default="", help="models with this word in their names")
    options = parser.parse_args(arguments)
    failed = False
    print(f"{'model':35} {'bytes':>10} {'exit':>4} {'s':>7} {'MiB':>7}  said")
    with tempfile.TemporaryDirectory() as folder:
        for name, make in HOSTILE.items():
            if options.only in name:
                path = Path(folder) / "hostile.onnx"
                path.write_bytes(make())
                code, seconds, peak, text = taken(path)
                failed |= code not in (0, 2)
                size = path.stat().st_size
                print(
                    f"{name:35} {size:10,} {code:4} {seconds:7.1f} {peak:7.0f}  {text[:150]}",
                    flush=True,
                )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
