"""Running on this device: profile, run, trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...answers.blocks import Sentence, Tone
from ...formulations.errors import InvalidInputError
from ...question.subjects import CHAIN, Folder, Inputs, Machine, Measuring, Opening, Running
from ..base.answer import Answer, View, command
from ..options.boards import on_boards
from ..options.cluster import ClusterChoice, ClusterFileOption
from ..options.models import SIMULATED, CheckOption, EngineOption, ModelsArgument, is_chain
from ..options.problem import FilesArgument, NumberOption, ask_plan, result_option

if TYPE_CHECKING:
    from ...api.slowdown.side_by_side import Together
    from ...boards.running import Ran
    from ...executor.cluster.loss import Loss
    from ...executor.measurement import Measurement
    from ...executor.model import Model
    from ...profiler.profile import Profile


def _profile_of_board(ran: Ran, given: Mapping[str, Any]) -> View:
    from ...boards.board import load_profiled

    return _profile_view(load_profiled(given["folder"].out))


@command(
    "gapless profile squeezenet --units core0 --out profile",
    "gapless profile model.onnx --shape x=1,3,480,640 --out profile --overwrite",
)
@on_boards(_profile_of_board)
def profile(
    models: ModelsArgument,
    *,
    opening: Opening,
    inputs: Inputs,
    machine: Machine,
    folder: Folder,
    chain: Annotated[bool, CHAIN] = False,
    measuring: Measuring,
    cluster: ClusterFileOption = None,
    place: ClusterChoice,
) -> Answer:
    """Measure every layer of a model on every unit; writes problems that `gapless plan` takes."""
    from ...files import run_files
    from ...files.run import Entry, refuse_occupied
    from ..tasks import measuring as tasks

    out, entry = folder.out, folder.made(Entry)
    refuse_occupied(out, entry)
    shared = [*measuring.options("batch"), *measuring.options("side_by_side"), ""][0]
    subject = _subject(models, opening, measuring.batch, chained=is_chain(models, chain=chain, shared=shared))
    if place:
        from ..tasks.clusters import profile_on

        stray = measuring.options("steady", "item_seconds", "most_workers", "accept_noise")
        for option in [*stray, *inputs.options()]:
            raise InvalidInputError(f"{option} is for networks on one device, not for a cluster")
        if isinstance(subject, list):
            raise InvalidInputError(
                "over a cluster one network is profiled at a time: --chain makes one of several models"
            )
        measured, notes = profile_on(subject, place, cluster, engine=machine.engine, out=out, entry=entry)
        return _profiled(measured, notes)
    target = tasks.Target.of(subject, machine, inputs.samples)
    with tasks.begun("profile", target.networks, out, entry) as work:
        found, notes = tasks.profile_watched(target, work, options=tasks.profile_options(measuring))
        notes += tasks.shared_notes(target) if not shared else []
        notes += run_files.write_found(found, work)
    return _profiled(found, notes)


def _subject(
    models: list[str], opening: Opening, batch: Sequence[int], *, chained: bool
) -> Model | list[Model]:
    """Return what to profile: one network, or several that share the units; batches are several."""
    from ...api.models import in_batches, open_all
    from ...executor.joined import join

    if batch:
        models, shapes = in_batches(models, opening.shape or {}, batch)
        opening = replace(opening, shape=shapes)
    opened = open_all(models, opening)
    return join(opened) if chained else opened


def _profiled(found: Profile | Together, notes: list[str]) -> Answer:
    from ...profiler.profile import Profile

    kind = "profile" if isinstance(found, Profile) else "profiles"
    return Answer.of(kind, found, lambda: _profile_view(found), notes=notes)


def _profile_view(found: Profile | Together) -> View:
    from ...answers.measured import profile_blocks
    from ...profiler.profile import Profile

    profiles = (found,) if isinstance(found, Profile) else found.profiles
    return [part for one in profiles for part in profile_blocks(one)]


def _run_of_board(ran: Ran, given: Mapping[str, Any]) -> View:
    from ...answers.measured import measurement_blocks
    from ...executor.measurement import Measurement
    from ..tasks.running import predicted

    if given["running"].feed is not None:
        return [Sentence(f"{ran.document().get('requests')} requests")]
    found = ran.read(Measurement, "a measurement")
    asked, _ = ask_plan(given["files"], number=given["number"])
    return measurement_blocks(found, predicted(asked.problem, found.deployment))


@command("gapless run gapless-out --seconds 2s")
@on_boards(_run_of_board)
def run(
    files: FilesArgument,
    *,
    number: NumberOption = None,
    engine: EngineOption = None,
    running: Running,
    input_range: Annotated[tuple[str, ...], Inputs.field_named("input_range")] = (),
    place: ClusterChoice,
    out: Annotated[Path | None, result_option("Also write the measurement here.")] = None,
) -> Answer:
    """Run a plan, here or over devices, and measure it beside its prediction: period, latency, receipts."""
    from ..tasks import running as tasks

    limits, trace, inputs = (
        tasks.budget(running),
        running.trace,
        Inputs(feed=running.feed, input_range=input_range),
    )
    asked, plan = ask_plan(files, number=number)
    if engine == SIMULATED:
        stray = [*inputs.options(), *running.options("output", "at", "restart")]
        found, notes = tasks.run_simulated(
            asked.problem, plan, limits, task_slots=running.task_slots, trace=trace, stray=stray
        )
        return _measured(found, None, [*asked.notes, *notes])
    with tasks.opened(
        asked.problem,
        plan,
        engine=engine,
        at=running.at,
        samples=inputs.samples,
        restarts=int(running.restart),
        task_slots=running.task_slots,
        place=place,
        check=running.check,
    ) as work:
        if running.feed is not None:
            count = tasks.run_requests(work, running.output)
            return _fed(count, running.output, [*asked.notes, *work.notes], work.losses)
        found = work.pipeline.measure(limits)
        predicted = tasks.predicted(work.problem, work.pipeline.deployment)
        written = tasks.write_trace(work.pipeline, trace)
        notes, losses = [*asked.notes, *work.notes, *written], work.losses
    return _measured(found, predicted, notes, losses)


def _fed(count: int, output: Path | None, notes: list[str], losses: Sequence[Loss]) -> Answer:
    return Answer.of(
        "outputs",
        {"requests": count, **_lost(losses)},
        lambda: [Sentence(f"{count} requests"), *map(_lost_words, losses)],
        notes=[*notes, *([f"wrote {output}"] if output else [])],
    )


def _lost(losses: Sequence[Loss]) -> dict[str, Any]:
    """Return what was lost meanwhile, for documents of clusters; nothing where nothing was."""
    return {"losses": losses} if losses else {}


def _lost_words(loss: Loss) -> Sentence:
    then = f"from then on [{loss.then}] ran" if loss.then else "nothing could go on without it"
    return Sentence(f"{loss.at}: {loss}; {then}", Tone.WARN)


def _measured(
    found: Measurement,
    predicted: Measurement | None,
    notes: list[str],
    losses: Sequence[Loss] = (),
) -> Answer:
    from ...answers import measured as answers
    from ...executor.tuning.result import MEASUREMENT
    from ...formulations.files import dump

    return Answer.of(
        "measurement",
        found,
        lambda: [*answers.measurement_blocks(found, predicted), *map(_lost_words, losses)],
        notes=notes,
        files={"out": lambda: dump(found, MEASUREMENT)},
        predicted_us=None if predicted is None else predicted.period_us,
        **_lost(losses),
    )


@command("gapless tools trace plan.json --simulated --out trace.json")
def tools_trace(
    files: FilesArgument,
    *,
    number: NumberOption = None,
    engine: EngineOption = None,
    at: Annotated[tuple[str, ...], Running.field_named("at")] = (),
    requests: Annotated[int, typer.Option(min=1, max=4096, help="How many requests.")] = 20,
    simulated: Annotated[
        bool, typer.Option("--simulated", help="Play the plan on its table instead of running it.")
    ] = False,
    check: CheckOption = True,
    place: ClusterChoice,
    out: Annotated[Path, result_option("Where it goes.")] = Path("trace.json"),
) -> Answer:
    """Write a trace for ui.perfetto.dev or chrome://tracing: one track a unit, arrows along each request."""
    from ...answers.traces import traced_chart
    from ...files import run_files
    from ..tasks import running

    simulated = simulated or engine == SIMULATED
    asked, plan = ask_plan(files, number=number)
    found, notes = running.traced(
        asked.problem,
        plan,
        requests=requests,
        simulated=simulated,
        engine=engine,
        at=at,
        place=place,
        check=check,
    )
    events = run_files.save_trace(found, out, problem=asked.problem)
    words = f"wrote {out}: open it at ui.perfetto.dev; `gapless show {out}` shows it here again"
    return Answer.of(
        "trace_file",
        {"path": str(out), "events": events},
        lambda: [traced_chart(found), Sentence(words)],
        notes=[*asked.notes, *notes],
    )
