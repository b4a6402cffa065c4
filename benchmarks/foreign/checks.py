"""What is tried with each file: whether it opens, whether pieces give the right numbers, whether it tunes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import gapless
from gapless.api.device import this_device
from gapless.executor.engines.ort_session import reference_outputs
from gapless.executor.graph.onnx_model import OnnxModel
from gapless.executor.model import allowed_of, is_quantised, references
from gapless.executor.tuning.racing import Rung, TuningOptions
from gapless.formulations.errors import GaplessError
from gapless.profiler.profile import ProfileOptions

if TYPE_CHECKING:
    from gapless.executor.model import Arrays

    from .catalog import ForeignFile

MOST_CUTS = 8
"""Cuts of a file that are tried, spread over it."""

SEED = 1
QUICK = ProfileOptions(
    min_repetitions=5, min_seconds_per_item=0.0, max_seconds_per_item=0.1, retries=0, checks=0, most_far=2.0
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A file that was opened, or why it was not.

    Attributes
    ----------
    model
        The model, or None.
    seconds
        What opening took.
    refusal
        What was said instead.
    """

    model: OnnxModel | None
    seconds: float
    refusal: str = ""


def opened(path: Path, file: ForeignFile) -> Opened:
    """Open a file as a user does."""
    started = time.perf_counter()
    try:
        model = gapless.open_model(path, shapes=file.shapes)
    except GaplessError as error:
        return Opened(model=None, seconds=time.perf_counter() - started, refusal=str(error))
    assert isinstance(model, OnnxModel)
    return Opened(model=model, seconds=time.perf_counter() - started)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sliced:
    """How far a model that is cut is from the uncut one.

    Attributes
    ----------
    cuts
        How many single cuts were tried, besides cutting at all legal cuts at once.
    worst
        The largest relative error of an output.
    allowed
        What is allowed.
    """

    cuts: int
    worst: float
    allowed: float


def sliced(model: OnnxModel) -> Sliced:
    """Cut a model in two at several cuts, and at all of them, and compare with the uncut file."""
    inputs = model.sample_inputs(SEED)
    right, allowed = references(model, [SEED, SEED + 1, SEED + 2]), allowed_of(model.network, ["high"])
    legal, end = model.network.legal_cuts, len(model.network.layers)
    chosen = (
        [legal[round(place * (len(legal) - 1) / (MOST_CUTS - 1))] for place in range(MOST_CUTS)]
        if legal
        else []
    )
    ways = [[0, cut, end] for cut in dict.fromkeys(chosen)]
    worst = 0.0
    for way in (*ways, [0, *legal, end]):
        found = _played(model, way, inputs)
        worst = max(worst, *(each.compare(found[name], 0, allowed).error for name, each in right.items()))
    return Sliced(cuts=len(ways), worst=worst, allowed=allowed.error)


def _played(model: OnnxModel, cuts: Sequence[int], inputs: Arrays) -> Arrays:
    """Run chunk after chunk in ONNX Runtime."""
    tensors = dict(inputs)
    for start, stop in pairwise(cuts):
        for piece in model.pieces(start, stop):
            taken = {spec.name: tensors[spec.name] for spec in piece.inputs}
            tensors |= reference_outputs(piece.content.read(), taken, quantised=is_quantised(model.network))
    return tensors


def tuned(model: OnnxModel, engine: str, *, units: Sequence[str], budget_s: float) -> str:
    """Tune a model with an engine, and say in a few words what came of it."""
    options = TuningOptions(rungs=(Rung(seconds=0.1, rounds=1),), budget_s=budget_s)
    try:
        found = gapless.tune(
            model,
            platform=this_device(engine=engine.partition(",")[0], units=units),
            engine=engine,
            top=3,
            options=options,
            profile_options=QUICK,
        )
    except GaplessError as error:
        return f"no: {shortened(str(error))}"
    winner = found.result.winner
    if winner is None or winner.period_us is None:
        failures = [row.failure.message for row in found.result.rows if row.failure is not None]
        return f"no: {shortened(failures[0] if failures else 'nothing was measured')}"
    failed = sum(row.failure is not None for row in found.result.rows)
    words = f"{winner.period_us.median / 1000:.2f} ms"
    return f"{words}, {failed} of {len(found.result.rows)} plans failed" if failed else words


def shortened(text: str, most: int = 60) -> str:
    """Return the beginning of a message, in one line."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 3]}..."
