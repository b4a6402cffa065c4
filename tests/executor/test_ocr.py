"""Real models with dynamic shapes and hundreds of operators (PP-OCRv4), cut often, through MNN."""

from __future__ import annotations

import os

import pytest

from gapless.executor.engines.registry import get_engine
from gapless.executor.joined import join
from gapless.executor.model import Model
from gapless.executor.pipeline.pipeline import Pipeline
from gapless.executor.pipeline.verify import References, verify
from gapless.executor.runner import Budget
from gapless.formulations.deployment import Deployment
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.formulations.plan import Chunk
from gapless.formulations.streams import Stream
from tests.executor.graph.models import OCR_SHAPES, opened_ocr

pytestmark = pytest.mark.slow

CORE = min(os.sched_getaffinity(0))
PLATFORM = Platform(
    name="here",
    units=tuple(ProcessingUnit(name=name, cores=(CORE,), threads=1) for name in ("a", "b")),
)


def stream(model: Model, step: int) -> Stream:
    """Cut a model at every `step`-th legal cut; its chunks go to the two units in turns."""
    network = model.network
    ends = [*network.legal_cuts[step - 1 :: step], len(network.layers)]
    chunks = tuple(
        Chunk(network=network.name, start=start, stop=stop, unit="ab"[index % 2])
        for index, (start, stop) in enumerate(zip([0, *ends], ends, strict=False))
        if start < stop
    )
    return Stream(name=network.name, chunks=chunks)


@pytest.mark.parametrize("task", OCR_SHAPES)
def test_cut_at_every_tenth_legal_cut_the_numbers_stay(task: str) -> None:
    model = opened_ocr(task)
    deployment = Deployment(streams=(stream(model, 10),))
    assert len(deployment.streams[0].chunks) >= 5
    with Pipeline(deployment, {task: model}, PLATFORM, get_engine("mnn")) as pipeline:
        found = verify(pipeline, References({task: model}))
    assert found.largest_error < 1e-3


def test_the_three_run_as_one_workload() -> None:
    model = join([opened_ocr(task) for task in OCR_SHAPES], name="ocr")
    half = len(model.network.layers) // 2
    cut = min(model.network.legal_cuts, key=lambda cut: abs(cut - half))
    chunks = (
        Chunk(network="ocr", start=0, stop=cut, unit="a"),
        Chunk(network="ocr", start=cut, stop=len(model.network.layers), unit="b"),
    )
    deployment = Deployment(streams=(Stream(name="ocr", chunks=chunks),))
    with Pipeline(deployment, {"ocr": model}, PLATFORM, get_engine("mnn")) as pipeline:
        assert verify(pipeline, References({"ocr": model})).largest_error < 1e-3
        measured = pipeline.measure(Budget(requests=3, warm_up_requests=1))
    assert measured.requests == 3
    assert {receipt.piece.partition("[")[0] for receipt in measured.receipts} == set(OCR_SHAPES)
