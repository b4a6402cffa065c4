"""One class of tests, every engine; and engines that must not pass it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from gapless.executor.engine import Engine
from gapless.executor.engines.conformance import check_engine
from gapless.executor.engines.registry import get_engine
from gapless.formulations.errors import InvalidInputError
from gapless.testing import EngineConformance

from . import liars
from .pieces import direction

pytestmark = pytest.mark.slow

BY_UNIT = "needs two cores to tell them apart"


@pytest.fixture(params=["mnn", "onnxruntime", "openvino", "callable"])
def name(request: pytest.FixtureRequest) -> str:
    engine: str = request.param
    available = get_engine(engine).availability()
    if not available.ok:
        pytest.skip(available.reason)
    return engine


class TestEveryEngine(EngineConformance):
    @pytest.fixture(autouse=True)
    def _choose(self, name: str) -> Iterator[None]:
        self.name = name
        yield
        assert self.tried

    def make_engine(self) -> Engine:
        return get_engine(self.name)


class Conformance(EngineConformance):
    runs = 2_000

    def __init__(self, engine: type[liars.Honest]) -> None:
        self.engine = engine

    def make_engine(self) -> Engine:
        return self.engine()


LIES = [
    (liars.OnOtherCores, "receipts", r"says cores \(\d,\), but the kernel lets a thread .* run on \(\d, \d"),
    (liars.WithFewerThreads, "receipts", r"the receipt says 2 threads, but only 1 computed"),
    (liars.WithMoreThreads, "receipts", r"the receipt says 1 threads, but 2 threads computed"),
    (liars.LettingMismatchesPass, "units_that_are_not_there_are_refused", r"opens a session with cores \(\d"),
    (
        liars.OnAnyBackend,
        "units_that_are_not_there_are_refused",
        r"opens .* backend no-such-backend, which is",
    ),
    (liars.OnAGpu, "backends_are_not_pretended", r"runs on 'gpu', but gives the very bits of its CPU"),
    (
        liars.OffByOnePercent,
        "numbers",
        r"wrong numbers on unit 'one': sample 'convolution', output 'z': relative error 0\.009",
    ),
    (liars.WithConstantScores, "numbers", r"'boxes and scores', output 'y', channels 4 to 9 of axis 1"),
    (liars.WithOneScoreChannelOff, "numbers", r"'boxes and scores', output 'y', channel 7 of axis 1"),
    (liars.WithOneWrongClass, "numbers", r"'classes', output 'y', at \[0, 0, 3, 4\]: 1\.6 % .* not tied"),
    (liars.WithFlippedBooleans, "numbers", r"'comparison', output 'y', at \[0, 0\]: 17 % of the entries"),
    (liars.WithConstantAnswers, "numbers", r"sample 'convolution', output 'z': relative error"),
    (liars.ImpreciseWhenHigh, "precision", r"'convolution', .* relative error 0\.009\d*, allowed is 0\.001"),
    (liars.IgnoringNewInputs, "numbers", r"wrong numbers"),
    (liars.IgnoringNewInputs, "copies", r"it ignores new inputs: the outputs are those of the inputs before"),
    (liars.ComputingOnYourMemory, "copies", r"computes on the memory of the caller, which was overwritten"),
    (liars.WritingIntoOldOutputs, "copies", r"filled by copy_out change with the next run"),
    (liars.SpoilingInputs, "copies", r"changes the arrays that are given to copy_in"),
    (
        liars.KeepingOutputs,
        "leaks",
        r"it leaks: after 2,000 runs the process is \d+\.\d MiB larger, allowed are 4",
    ),
    (liars.KeepingFiles, "leaks", r"it leaks: after 40 sessions there are 40 more files"),
    (liars.Crashing, "what_cannot_run_is_refused", r"took the process with it: .* was killed by SIGABRT"),
    (
        liars.Raising,
        "what_cannot_run_is_refused",
        r"ValueError, where an error of gapless belongs: something",
    ),
    (liars.WithoutNames, "what_cannot_run_is_refused", r"refusal of 'with garbage' does not name it"),
    (liars.RunningAnything, "what_cannot_run_is_refused", r"runs a piece with garbage without a word"),
    (liars.WithNegativeTimes, "times_of_operators", r"a time is negative"),
    (liars.RefusingEverything, "numbers", r"opens nothing on unit 'one': cannot convert convolution"),
    (liars.NowhereToRun, "numbers", r"opens nothing on any unit: no device for 'convolution'"),
    (liars.TakingNothing, "it_is_found", r"takes none of the kinds of content"),
    (liars.WithoutBackends, "it_is_found", r"no backend that works here"),
]


@pytest.mark.parametrize(("engine", "test", "words"), LIES, ids=[f"{e.__name__}-{t}" for e, t, _ in LIES])
def test_an_engine_that_is_wrong_fails_and_is_told_why(
    engine: type[liars.Honest], test: str, words: str
) -> None:
    if test in ("receipts", "units_that_are_not_there_are_refused") and len(os.sched_getaffinity(0)) < 2:
        pytest.skip(BY_UNIT)
    with pytest.raises(AssertionError, match=words):
        getattr(Conformance(engine), f"test_{test}")()


def test_of_tied_classes_either_is_right() -> None:
    Conformance(liars.TakingTheLastOfTied).test_numbers()


def test_all_of_it_without_pytest() -> None:
    model = direction()
    seen: list[tuple[int, int]] = []
    checks = check_engine(
        liars.OffByOnePercent.name, model=model, report=lambda name, done, total: seen.append((done, total))
    )
    assert seen == [(index, len(checks)) for index in range(len(checks))]
    problems = {check.name: check.problem for check in checks}
    assert problems["receipts"] is None
    assert "relative error 0.009" in (problems["numbers"] or "")
    assert "relative error 0.01, allowed" in (problems[f"the model {model.network.name}"] or "")
    assert {check.name: check.tried for check in checks}["it is found"] == "backends cpu; runs onnx"
    with pytest.raises(InvalidInputError, match="no engine 'nothing'"):
        check_engine("nothing")
