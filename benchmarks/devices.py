"""Tuned plans against baselines on this machine: `python -m benchmarks.devices`.

Profiles each workload, plans it, and races its best plans against every baseline (each unit alone, all
cores, replicas), interleaved in one run. Prints what gapless chose, how it compares with the best
baseline, and how well the isolated and the heavy table predicted what was measured.

Options: `--workloads name,name` (built-in names; `+` joins several into one workload; `ocr` is the three
PP-OCRv4 models), `--top K`, `--emulate core1=50%`, `--mode race|fixed`.
"""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path

import gapless
from benchmarks.arguments import parse_emulation
from gapless.api.tuned import Tuned
from gapless.executor.progress import Step
from gapless.executor.tuning.candidates import CandidateKind
from gapless.executor.tuning.racing import TuningMode, TuningOptions
from gapless.executor.tuning.result import TuningResult
from gapless.formulations.errors import GaplessError
from gapless.formulations.hardware import Platform

WORKLOADS = ("squeezenet", "mobilenetv2", "mobilenetv1", "resnet18", "ocr")
_OCR = {
    "det": ("ch_PP-OCRv4_det_infer.onnx", (1, 3, 480, 640)),
    "cls": ("ch_ppocr_mobile_v2.0_cls_infer.onnx", (1, 3, 48, 192)),
    "rec": ("ch_PP-OCRv4_rec_infer.onnx", (1, 3, 48, 320)),
}


def ocr_models() -> tuple[list[str], dict[str, tuple[int, ...]]]:
    """Return locators and shapes of the PP-OCRv4 models of the package rapidocr-onnxruntime."""
    spec = find_spec("rapidocr_onnxruntime")
    if spec is None or spec.origin is None:
        raise SystemExit("the workload ocr needs the package rapidocr-onnxruntime")
    folder = Path(spec.origin).parent / "models"
    locators = [f"{name}={folder / file}" for name, (file, _) in _OCR.items()]
    return locators, {f"{name}/x": shape for name, (_, shape) in _OCR.items()}


def tuned(workload: str, platform: Platform, *, top: int, options: TuningOptions) -> Tuned:
    """Profile, plan and tune one workload."""
    if workload == "ocr":
        locators, shapes = ocr_models()
    else:
        locators, shapes = workload.split("+"), {}
    model = gapless.running.open_models(locators, shapes=shapes)
    return gapless.tune(model, platform=platform, top=top, options=options, report=_quiet)


def show(workload: str, result: TuningResult) -> None:
    """Print what was found for one workload."""
    winner = result.winner
    if winner is None or winner.period_us is None:
        print(f"{workload}: nothing was measured")
        return
    print(f"\n{workload}: {winner.candidate.label} [{winner.candidate.deployment}]")
    print(f"  {winner.period_us.median / 1000:.2f} ms a request, drift {result.drift_percent or 0.0:+.1f} %")
    for row in result.rows:
        if row.candidate.kind is CandidateKind.BASELINE or row is result.best(CandidateKind.PLAN):
            period = "-" if row.period_us is None else f"{row.period_us.median / 1000:8.2f} ms"
            spread = (
                ""
                if row.period_us is None
                else f"{row.period_us.least / 1000:.2f}..{row.period_us.most / 1000:.2f}"
            )
            ratio = "-" if row.ratio is None else f"{row.ratio:.3f}"
            failure = f"  failed: {row.failure.message}" if row.failure else ""
            print(f"  {row.candidate.label:<32} {period} ({spread})  {ratio} times the choice{failure}")
    for entry in result.quality:
        pearson = "-" if entry.pearson is None else f"{entry.pearson:.3f}"
        mape = "-" if entry.mape_percent is None else f"{entry.mape_percent:.1f} %"
        print(f"  {entry.table:<9} {entry.scope:<24} {entry.plans:3} plans  Pearson {pearson}  MAPE {mape}")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--workloads", default=",".join(WORKLOADS))
    parser.add_argument("--top", type=int, default=20)
    parser.add_argument("--emulate", action="append", default=None)
    parser.add_argument("--mode", choices=list(TuningMode), default=TuningMode.RACE)
    given = parser.parse_args()
    platform = gapless.this_device(emulate=parse_emulation(given.emulate))
    print(f"{platform.source}; units {', '.join(platform.unit_names)}")
    for workload in given.workloads.split(","):
        try:
            found = tuned(
                workload, platform, top=given.top, options=TuningOptions(mode=TuningMode(given.mode))
            )
        except GaplessError as error:
            print(f"\n{workload}: {type(error).__name__}: {error}")
        else:
            show(workload, found.result)


def _quiet(step: Step) -> None:
    """Report nothing."""


if __name__ == "__main__":
    main()
