"""Whether batches pay: three networks with a free first dimension, alone and in batches, under load.

    python -m benchmarks.serving_batches --seconds 10 --clients 16

Direction and recognition of PP-OCRv4 (`rapidocr_onnxruntime`), and four large matrices, which one inference
mostly waits for memory for. Clients are coroutines that ask again as soon as they are answered; with batches
and without take turns, on the same coordinator, without a web server.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from rich.console import Console
from rich.table import Table

import gapless
from gapless.api.models import in_batches, open_all
from gapless.executor.coordination.coordinator import Coordinator
from gapless.formulations.coordination.record import percentile
from gapless.question.subjects import Opening
from gapless.serving.batching import worthwhile
from gapless.serving.parameters import Wishes
from gapless.serving.service import Service

_WIDTH = 1024
SIZES = (1, 2, 4, 8)


def networks(folder: Path) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield locators and shapes of one inference."""
    spec = find_spec("rapidocr_onnxruntime")
    if spec is not None and spec.origin is not None:
        models = Path(spec.origin).parent / "models"
        yield f"cls={models}/ch_ppocr_mobile_v2.0_cls_infer.onnx", (1, 3, 48, 192)
        yield f"rec={models}/ch_PP-OCRv4_rec_infer.onnx", (1, 3, 48, 160)
    yield f"matrices={_matrices(folder)}", (1, _WIDTH)


def _matrices(folder: Path) -> Path:
    rng, names = np.random.default_rng(0), ["x", "a", "b", "c", "y"]
    weights = [rng.normal(0, 0.03, (_WIDTH, _WIDTH)).astype(np.float32) for _ in names[1:]]
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", [taken, f"w{index}"], [given])
            for index, (taken, given) in enumerate(pairwise(names))
        ],
        "matrices",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", _WIDTH])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", _WIDTH])],
        [numpy_helper.from_array(array, f"w{index}") for index, array in enumerate(weights)],
    )
    path = folder / "matrices.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8), path)
    return path


def under_load(coordinator: Coordinator, name: str, *, batches: bool, options: argparse.Namespace) -> str:
    """Return how many inferences a second there are, and what they take."""
    service = Service()
    service.begin(coordinator, max_delay_s=options.delay_ms / 1000 if batches else None)
    model = coordinator.registered[name]
    sample = model.held.model.sample_inputs(0)
    took_s = list[float]()

    async def client(until_s: float) -> None:
        while (start_s := time.monotonic()) < until_s:
            await service.served(model, dict(sample), Wishes(), lambda: None)
            took_s.append(time.monotonic() - start_s)

    async def clients() -> None:
        until_s = time.monotonic() + options.seconds / options.turns
        await asyncio.gather(*(client(until_s) for _ in range(options.clients)))

    asyncio.run(clients())
    known_ms = sorted(1000 * each for each in took_s)
    rate = len(known_ms) * options.turns / options.seconds
    return f"{rate:,.0f} / {percentile(known_ms, 500) or 0:.1f} / {percentile(known_ms, 990) or 0:.1f}"


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="of load, for each network and way")
    parser.add_argument("--turns", type=int, default=2, help="into which they are divided")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--delay-ms", type=float, default=0.0)
    parser.add_argument("--units", default="core0,core1")
    parser.add_argument("--engine")
    options = parser.parse_args()
    table = Table(title=f"{options.clients} clients, load {os.getloadavg()[0]:.1f}")
    columns = ["network", *(f"{size}: ms each" for size in SIZES), "used"]
    for column in [*columns, "alone: 1/s, p50, p99 ms", "in batches"]:
        table.add_column(column)
    units = gapless.this_device(units=options.units.split(","))
    with tempfile.TemporaryDirectory() as folder:
        for locator, shape in networks(Path(folder)):
            name = locator.partition("=")[0]
            places, shapes = in_batches([locator], {"x": shape}, SIZES)
            models = open_all(places, Opening(shape=shapes))
            with gapless.coordination.open_coordinator(
                models, platform=units, engine=options.engine, queue=256
            ) as opened:
                table.add_row(name, *_row(opened, name, options))
    Console(width=150).print(table)


def _row(opened: Coordinator, name: str, options: argparse.Namespace) -> list[str]:
    found = worthwhile(opened, name, {size: f"{name}*{size}" for size in SIZES[1:]})
    told = [f"{found.each_us[size] / 1000:.2f}" for size in SIZES]
    used = ", ".join(map(str, found.used))
    ways = [
        [under_load(opened, name, batches=batches, options=options) for batches in (False, True)]
        for _ in range(options.turns)
    ]
    return [*told, used, *("\n".join(each) for each in zip(*ways, strict=True))]


if __name__ == "__main__":
    main()
