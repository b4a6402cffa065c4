"""How well a cost table tells what chunks take that had no part in its making.

    python -m benchmarks.chunk_costs                          # PP-OCR and two built-in networks; minutes
    python -m benchmarks.chunk_costs mobilenetv2 --rounds 5
    python -m benchmarks.chunk_costs model.onnx --shape x=1,3,48,192 --basis chunks

Each network is profiled in every round, the networks in turn; each profile measures the same random chunks.
"predicted" and "measured" are medians over the rounds, "spread" is the largest measured time over the
least. "error" is predicted over measured; its mean counts without the sign.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean, median

from rich.console import Console
from rich.table import Table

import gapless
from gapless.executor.engines.registry import get_engine
from gapless.executor.machine.state import fingerprint, machine_load
from gapless.executor.model import Model
from gapless.profiler.profile import Basis, ChunkCheck, Profile, ProfileOptions, profile

PP_OCR = {
    "det": ("ch_PP-OCRv4_det_infer.onnx", (1, 3, 480, 640)),
    "cls": ("ch_ppocr_mobile_v2.0_cls_infer.onnx", (1, 3, 48, 192)),
    "rec": ("ch_PP-OCRv4_rec_infer.onnx", (1, 3, 48, 320)),
}
BUILT_IN = ("mobilenetv2", "squeezenet")


def main() -> None:
    """Run the benchmark and print its tables."""
    parser = argparse.ArgumentParser(description="How well a cost table tells what chunks take.")
    parser.add_argument("models", nargs="*", default=[*PP_OCR, *BUILT_IN])
    parser.add_argument("--shape", action="append", default=[], metavar="INPUT=1,3,48,192")
    parser.add_argument("--engine", default="mnn")
    parser.add_argument("--basis", choices=list(map(str, Basis)), default=str(Basis.OPERATORS))
    parser.add_argument("--units", nargs="*", default=[])
    parser.add_argument("--checks", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    console = Console(width=118)
    console.print(f"{fingerprint()}; {machine_load() or 0:.0%} of it is busy with something else")
    models = [open_model(name, options.shape) for name in options.models]
    platform = gapless.this_device(units=options.units, engine=options.engine)
    wanted = ProfileOptions(checks=options.checks, basis=Basis(options.basis))
    rounds = [
        [profile(model, platform, get_engine(options.engine), options=wanted) for model in models]
        for _ in range(options.rounds)
    ]
    for profiles in zip(*rounds, strict=True):
        console.print(_table(profiles))


def open_model(name: str, shapes: Sequence[str]) -> Model:
    """Open one of the PP-OCR models by its short name, or any other model."""
    if name not in PP_OCR:
        given = dict(shape.split("=") for shape in shapes)
        return gapless.open_model(
            name, shapes={key: tuple(map(int, sizes.split(","))) for key, sizes in given.items()}
        )
    file, shape = PP_OCR[name]
    spec = find_spec("rapidocr_onnxruntime")  # without importing it
    if spec is None or spec.origin is None:
        raise SystemExit("the PP-OCR models are not installed: pip install rapidocr-onnxruntime")
    path = Path(spec.origin).parent / "models" / file
    return gapless.open_model(f"{name}={path}", shapes={"x": shape})


def _table(profiles: Sequence[Profile]) -> Table:
    first = profiles[0]
    rows = list(zip(*(taken.checks for taken in profiles), strict=True))
    errors = [_error(checks) for checks in rows]
    seconds = median(taken.seconds for taken in profiles)
    by_unit: dict[str, list[float]] = {}
    for checks, error in zip(rows, errors, strict=True):
        by_unit.setdefault(checks[0].chunk.unit, []).append(abs(error))
    shares = ", ".join(f"{unit} {fmean(those):.1%}" for unit, those in by_unit.items())
    table = Table(
        *("layers", "unit", "predicted us", "measured us", "spread", "error"),
        title=f"{first.network.name}: {len(first.network.layers)} layers, profiled in {seconds:.1f} s; "
        f"mean error {fmean(map(abs, errors)):.1%} ({shares})",
    )
    for checks, error in zip(rows, errors, strict=True):
        chunk, times_us = checks[0].chunk, [check.measured_us for check in checks]
        table.add_row(
            f"{chunk.start}-{chunk.stop - 1}",
            chunk.unit,
            f"{median(check.predicted_us for check in checks):.0f}",
            f"{median(times_us):.1f}",
            f"{max(times_us) / min(times_us):.2f}",
            f"{error:+.1%}",
        )
    return table


def _error(checks: Sequence[ChunkCheck]) -> float:
    return median(check.predicted_us for check in checks) / median(c.measured_us for c in checks) - 1


if __name__ == "__main__":
    main()
