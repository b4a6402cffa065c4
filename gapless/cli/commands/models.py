"""Models: what is in a file, how fast an engine runs it, what the cache holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...api.device import this_device
from ...api.engines import DEFAULT_ENGINE, resolve_engine, resolve_engines
from ...files import documents
from ...formulations.errors import ConversionError, InvalidInputError
from ...formulations.spatial import Axis
from ...question.fields import Only, said
from ...question.subjects import Inputs, Machine, Opening
from ...question.values import SOME_SIZE, YES, span_form
from ...solvers.pieces.finding import PieceMethod
from ..base.answer import Answer, View, command
from ..base.exits import ExitCode
from ..options.boards import on_boards
from ..options.models import ModelArgument, OptionalModelArgument

if TYPE_CHECKING:
    from ...boards.running import Ran
    from ...executor.callables import CallablePipeline
    from ...executor.chained import ChainedModel
    from ...executor.engines.bench import EngineBench
    from ...executor.model import Model
    from ...formulations.hardware import ProcessingUnit
    from ...formulations.spatial import SpatialNetwork


class AxisName(StrEnum):
    """Along which side tiles lie."""

    ROWS = "rows"
    COLUMNS = "columns"


@command(
    "gapless tools inspect squeezenet",
    "gapless tools inspect squeezenet --split 4",
    "gapless tools inspect squeezenet --pieces exact",
    "gapless tools inspect retinaface --support pixel4",
)
def tools_inspect(
    model: ModelArgument,
    *,
    opening: Opening,
    inputs: Inputs,
    split: Annotated[
        int | None,
        typer.Option(
            metavar="PARTS",
            min=2,
            help="Show what each operator costs in this number of tiles instead; with --support: divide "
            "the model into this number of sections, if there are fewer.",
        ),
    ] = None,
    axis: Annotated[AxisName, typer.Option(help="Along which side tiles lie.")] = AxisName.ROWS,
    pieces: Annotated[
        PieceMethod | None, typer.Option(help="Show the pieces that this method finds instead.")
    ] = None,
    time_limit_s: Annotated[float | None, said("Most time for finding pieces.", span_form("10s"))] = None,
    support: Annotated[
        str | None,
        typer.Option(
            metavar="PLATFORM|FILE|trials",
            help="Show which units can run which operators instead, and the sections and chunks that follow: "
            "of a shipped phone, of a platform file, or as the engine of this machine finds out.",
        ),
    ] = None,
    session_memory_bytes: Annotated[
        int | None,
        said(
            "With --support: what all loaded chunks may need; the least useful ones are left out.",
            SOME_SIZE,
        ),
    ] = None,
) -> Answer:
    """Show a model as the planner sees it: layers, legal cuts, FLOPs, bytes, operators MNN lacks."""
    from ...executor.callables import CallablePipeline
    from ...executor.chained import ChainedModel

    opened = _opened(model, opening, inputs)
    if support is not None:
        if pieces is not None:
            raise InvalidInputError("--pieces and --support show different things: give one of them")
        return _support(opened, support, split, session_memory_bytes)
    if session_memory_bytes is not None:
        raise InvalidInputError("--session-memory is about chunks on units: give --support PLATFORM, too")
    if split is not None or pieces is not None:
        spatial = _spatial(opened)
        if split is not None:
            return _split(spatial, split, Axis[axis.name])
        return _pieces(spatial, pieces, time_limit_s)
    shown = _pipeline(opened) if isinstance(opened, CallablePipeline | ChainedModel) else _onnx(opened)
    return shown if inputs.feed is None else replace(shown, notes=[*shown.notes, *_reference_notes(opened)])


def _opened(model: str, opening: Opening, inputs: Inputs) -> Model:
    """Open a model, tried with what is given for it."""
    from ...api.models import open_all
    from ...api.samples import tried_with

    samples = inputs.samples
    (opened,) = tried_with(open_all([model], opening), samples)
    return opened


def _reference_notes(opened: Model) -> list[str]:
    """Run the uncut model on the first request; return what that says of the inputs."""
    from ...executor.comparing import is_mostly_finite
    from ...executor.gathering import unverified_words

    right = opened.reference(opened.sample_inputs(0))
    words = unverified_words([name for name, array in right.items() if not is_mostly_finite([array])])
    return [f"cannot be verified: {words}" if words else "the uncut model gives finite numbers for the input"]


def _spatial(opened: Model) -> SpatialNetwork:
    from ...executor.graph.onnx_model import OnnxModel

    if not isinstance(opened, OnnxModel):
        raise InvalidInputError(f"{opened.network.name} is no ONNX model: its maps are not known")
    return opened.spatial()


def _support(opened: Model, where: str, sections: int | None, limit_bytes: int | None) -> Answer:
    from ...answers.models import support_blocks
    from ...api.support import model_support
    from ...executor.graph.onnx_model import OnnxModel

    if not isinstance(opened, OnnxModel):
        raise InvalidInputError(f"{opened.network.name} is no ONNX model: its functions say where they run")
    found = model_support(opened, where, sections=sections, session_bytes=limit_bytes)
    return Answer.of("support", found, lambda: support_blocks(found, limited=limit_bytes is not None))


def _split(network: SpatialNetwork, parts: int, axis: Axis) -> Answer:
    from ...answers.models import split_blocks
    from ...api.pieces import split_operators

    found = list(split_operators(network, parts, axis))
    return Answer.of(
        "split",
        {"network": network.name, "parts": parts, "axis": axis.name.lower(), "operators": found},
        lambda: split_blocks(network.name, found, parts, axis),
    )


def _pieces(network: SpatialNetwork, method: PieceMethod | None, time_limit_s: float | None) -> Answer:
    from ...answers.models import pieces_blocks
    from ...api.pieces import piece_summaries, pieces_of

    found = pieces_of(network, method=method, time_limit_s=time_limit_s)
    summaries = piece_summaries(network, found)
    return Answer.of(
        "pieces_of_model",
        found,
        lambda: pieces_blocks(network, found, summaries),
        network=network.name,
        pieces=summaries,
    )


def _pipeline(opened: CallablePipeline | ChainedModel) -> Answer:
    from ...answers.models import pipeline_blocks
    from ...api.branching import branching
    from ...executor.callable_inspection import inspect_pipeline

    found, graph = inspect_pipeline(opened), branching(opened)
    return Answer.of("inspection", found, lambda: pipeline_blocks(found, graph), branching=graph)


def _onnx(opened: Model) -> Answer:
    from ...answers import models as answers
    from ...api.branching import branching
    from ...executor.engines.mnn_engine import MnnEngine, trial
    from ...executor.graph.inspection import inspect_model
    from ...executor.graph.onnx_model import OnnxModel

    assert isinstance(opened, OnnxModel)
    found, graph = inspect_model(opened), branching(opened)
    (whole,) = opened.pieces(0, len(opened.network.layers))
    missing = MnnEngine().availability().reason
    problem = missing or trial(whole).problem
    return Answer.of(
        "inspection",
        found,
        lambda: answers.inspection_blocks(found, graph, problem),
        branching=graph,
        mnn_problem=problem or None,
    )


def _bench_of_board(ran: Ran, given: Mapping[str, Any]) -> View:
    from ...answers import models as answers
    from ...boards.board import benches, checks_of

    if given["check"]:
        return answers.check_blocks(*checks_of(ran))
    return answers.bench_blocks(benches(ran))


@command(
    "gapless device bench squeezenet --units core0 --seconds 200ms",
    "gapless device bench --engine onnxruntime --check",
)
@on_boards(_bench_of_board)
def device_bench(
    model: OptionalModelArgument = None,
    *,
    opening: Annotated[Opening, Only.of("shape")],
    inputs: Inputs,
    machine: Annotated[Machine, Only.of("engine", "units", "emulate", "precision")],
    seconds: Annotated[
        float,
        said("Least time for each unit.", span_form("1s", least="0us", most="10min")),
    ] = 1.0,
    check: Annotated[
        bool,
        said(
            "Put the engine to the tests that every engine must pass: numbers, receipts, refusals, copies, "
            "leaks. A MODEL is run besides, and not needed.",
            YES,
            flag=True,
        ),
    ] = False,
) -> Answer:
    """Run a whole model on each unit alone: times, copies, memory, receipts, and right numbers or not."""
    if model is None and not check:
        raise InvalidInputError("name a MODEL to run, or say --check to put the engine to its tests")
    opened = None if model is None else _opened(model, opening, inputs)
    models = () if opened is None else (opened,)
    chosen = (
        (resolve_engine(machine.engine or (None if models else DEFAULT_ENGINE), *models),)
        if check
        else resolve_engines(machine.engine, *models)
    )
    platform = this_device(
        units=machine.units, emulate=machine.emulate, engine=chosen, precision=machine.precision
    )
    if opened is None or check:
        return _checked(chosen[0].name, platform.units if machine.options("units", "emulate") else (), opened)
    return _benched(opened, chosen[0].name, platform.units, seconds)


def _benched(opened: Model, engine: str, units: Sequence[ProcessingUnit], seconds: float) -> Answer:
    from ...answers import models as answers

    refused: dict[str, ConversionError] = {}
    benches = list(_benches(opened, engine, units, seconds, refused))
    if not benches:
        raise next(iter(refused.values()))
    return Answer.of(
        "engine_bench",
        {"units": [{"unit": unit, **documents.plain_data(result)} for unit, result in benches]},
        lambda: answers.bench_blocks(benches),
        code=ExitCode.VERIFICATION if any(result.wrong for _, result in benches) else ExitCode.OK,
        notes=[
            *(f"wrong numbers on unit {unit}: {result.words}" for unit, result in benches if result.wrong),
            *(f"{name} cannot run the whole model: {error}" for name, error in refused.items()),
        ],
    )


def _benches(
    opened: Model,
    engine: str,
    units: Sequence[ProcessingUnit],
    seconds: float,
    refused: dict[str, ConversionError],
) -> Iterator[tuple[str, EngineBench]]:
    from ...executor.engines.bench import BenchEffort
    from ...executor.engines.bench import bench_engine as bench
    from ...executor.progress import Step
    from ..base.progress import StepLine

    with StepLine() as line:
        for number, unit in enumerate(units):
            runner = unit.engine.name or engine
            if runner in refused:
                continue
            text = f"running {opened.network.name} on {unit.name} by {runner}"
            line.report(Step(text=text, done=number, total=len(units)))
            try:
                yield unit.name, bench(opened, unit, engine=runner, effort=BenchEffort(min_seconds=seconds))
            except ConversionError as error:  # another engine may run it
                refused[runner] = error


def _checked(engine: str, units: Sequence[ProcessingUnit], opened: Model | None) -> Answer:
    from ...answers import models as answers
    from ...executor.engines.conformance import check_engine
    from ...executor.progress import Step
    from ..base.progress import StepLine

    with StepLine() as line:

        def report(name: str, done: int, total: int) -> None:
            line.report(Step(text=f"testing {engine}: {name}", done=done, total=total))

        checks = check_engine(engine, units=tuple(units), model=opened, report=report)
    passed = all(check.problem is None for check in checks)
    return Answer.of(
        "engine_check",
        {"engine": engine, "passed": passed, "checks": checks},
        lambda: answers.check_blocks(engine, checks),
        code=ExitCode.OK if passed else ExitCode.VERIFICATION,
    )


@command("gapless tools cache")
def tools_cache(
    *,
    clear: Annotated[bool, typer.Option("--clear", help="Remove everything that is in it.")] = False,
) -> Answer:
    """Show or clear the cache: converted pieces and built-in networks, made again when needed."""
    from ...answers import models as answers
    from ...executor.engines.cache import default_cache

    kept = default_cache()
    freed = kept.size_bytes if clear else 0
    if clear:
        kept.clear()
    keys = ("key", "suffix", "size_bytes")
    return Answer.of(
        "cache",
        {"folder": str(kept.folder), "limit_bytes": kept.limit_bytes, "size_bytes": kept.size_bytes},
        lambda: answers.cache_blocks(kept),
        notes=[f"removed {freed:,} bytes"] if clear else [],
        entries=[{key: getattr(entry, key) for key in keys} for entry in kept.entries()],
    )
