"""Running on this device: profile, run, trace."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group
from rich.text import Text

from ...executor.graph.choices import Simplification
from ...files import documents
from ...formulations.errors import InvalidInputError
from ...formulations.hardware import Precision
from ..base.answer import Answer, command
from ..base.general_options import JsonOption, heading, output_option
from ..options.boards import on_boards
from ..options.cluster import (
    AddressOption,
    AllowNoTokenOption,
    ClusterChoice,
    ClusterFileOption,
    LocalOption,
)
from ..options.models import (
    SIMULATED,
    BatchSizesOption,
    ChainOption,
    CheckOption,
    DeviceOption,
    EmulateOption,
    EngineOption,
    GranularityOption,
    InputOption,
    InputRangeOption,
    MaterializeOption,
    ModelsArgument,
    OutDirOption,
    OverwriteOption,
    PrecisionOption,
    ShapeOption,
    SideBySideOption,
    SimplifyOption,
    UnitsOption,
    is_chain,
    measuring_option,
    model_option,
    parse_samples,
    parse_sizes,
)
from ..options.problem import FilesArgument, NumberOption, ask_plan, check_writable

if TYPE_CHECKING:
    from ...executor.cluster.loss import Loss
    from ...executor.measurement import Measurement
    from ...executor.model import Model
    from ...profiler.profile import Profile

_running_option = heading("How to run")

ModelAtOption = Annotated[
    list[str] | None,
    model_option(
        metavar="OLD=NEW",
        help="Where a model lies now, for a problem that was profiled elsewhere; can be repeated.",
    ),
]
SecondsOption = Annotated[
    float | None, _running_option(min=0.01, max=86_400.0, help="How long, after the warm-up.")
]
RequestsOption = Annotated[
    int | None, _running_option(min=1, max=10_000_000, help="How many requests, after the warm-up.")
]

TaskSlotsOption = Annotated[
    int | None,
    _running_option(
        min=1,
        max=1024,
        help="Most requests of a stream on their way at once: more absorb hiccups, fewer wait less. "
        "Otherwise two for each chunk.",
    ),
]
RestartOption = Annotated[bool, _running_option("--restart", help="Replace lost workers, once.")]
RunInputOption = Annotated[
    Path | None,
    _running_option(
        "--input",
        metavar="FILE|FOLDER",
        help="Check the plan on these inputs, and run it once on each: an .npz file with one array for each "
        "input, whose first dimension counts the requests, or a folder of them. --output writes what comes "
        "out.",
    ),
]
OutputOption = Annotated[Path | None, _running_option(help="Where the outputs go, .npz.")]
TraceOption = Annotated[Path | None, output_option(help="Also write a Perfetto trace of some requests.")]
WarmUpOption = Annotated[
    int, _running_option(min=0, max=1_000_000, help="Requests that do not count.", show_default=True)
]
SteadyOption = Annotated[
    bool,
    measuring_option(
        "--steady",
        help="Warm each layer up until its times stop drifting: clocks and temperatures have settled "
        "then. At least three quarters of a second, and at most 5, for each measurement.",
    ),
]


ItemSecondsOption = Annotated[
    float | None,
    measuring_option(
        min=0.001,
        max=60.0,
        help="Least seconds for each item that is measured; otherwise 0.06. More even noise out.",
    ),
]
AcceptNoiseOption = Annotated[
    bool,
    measuring_option(
        "--accept-noise",
        help="Write the profile even if the machine was so noisy that it would be given up; notes say so.",
    ),
]


@command
@on_boards()
def profile(
    models: ModelsArgument,
    *,
    shape: ShapeOption = None,
    granularity: GranularityOption = "auto",  # type: ignore[assignment] # typer reads the text
    materialize: MaterializeOption = False,
    simplify: SimplifyOption = Simplification.AUTO,
    feed: InputOption = None,
    input_range: InputRangeOption = None,
    engine: EngineOption = None,
    device: DeviceOption = None,
    units: UnitsOption = None,
    emulate: EmulateOption = None,
    precision: PrecisionOption = Precision.HIGH,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Go on with the profile that is in the folder; what was unsteady is taken again.",
        ),
    ] = False,
    overwrite: OverwriteOption = False,
    chain: ChainOption = False,
    side_by_side: SideBySideOption = False,
    steady: SteadyOption = False,
    item_seconds: ItemSecondsOption = None,
    accept_noise: AcceptNoiseOption = False,
    batch: BatchSizesOption = None,
    cluster: ClusterFileOption = None,
    local: LocalOption = None,
    address: AddressOption = None,
    allow_no_token: AllowNoTokenOption = False,
    out: OutDirOption = Path("gapless-out"),
    json: JsonOption = False,
) -> Answer:
    """Measure every layer of a model on every unit; writes problems that `gapless plan` takes."""
    from ...api.slowdown.side_by_side import Together
    from ...files import run_files
    from ...files.run import Entry, refuse_occupied
    from ...view.terminal import running as views
    from ..tasks import measuring

    entry = Entry(resume=resume, overwrite=overwrite)
    refuse_occupied(out, entry)
    choice = measuring.DeviceChoice.of(engine, units=units, emulate=emulate, precision=precision, file=device)
    how = measuring.opening(shape, granularity, materialize=materialize, simplify=simplify)
    samples = parse_samples(feed, input_range)
    shared = "--batch" if batch is not None else "--side-by-side" if side_by_side else ""
    subject = _subject(models, how, batch, chained=is_chain(models, chain=chain, shared=shared))
    place = ClusterChoice(local=local, address=address, allow_no_token=allow_no_token)
    if place:
        from ..tasks.clusters import profile_on

        _refuse_on_clusters(
            {
                "--steady": steady,
                "--item-seconds": item_seconds is not None,
                "--accept-noise": accept_noise,
                "--input or --input-range": samples is not None,
            }
        )
        if isinstance(subject, list):
            raise InvalidInputError(
                "over a cluster one network is profiled at a time: --chain makes one of several models"
            )
        measured, notes = profile_on(subject, place, cluster, engine=engine, out=out, entry=entry)
        return _profiled(measured, notes)
    options = measuring.profile_options(steady=steady, item_s=item_seconds, accept_noise=accept_noise)
    target = measuring.Target.of(subject, choice, samples)
    with measuring.begun("profile", target.networks, out, entry) as work:
        found, notes = measuring.profile_watched(target, work, options=options)
        notes += measuring.shared_notes(target) if not shared else []
        notes += run_files.write_found(found, work)
    if isinstance(found, Together):
        return Answer(
            document=lambda: {**documents.header("profiles"), **documents.plain_data(found)},
            view=lambda: views.profiles_view(found.profiles),
            notes=notes,
        )
    return _profiled(found, notes)


def _refuse_on_clusters(given: dict[str, bool]) -> None:
    for option, is_given in given.items():
        if is_given:
            raise InvalidInputError(f"{option} is for networks on one device, not for a cluster")


def _subject(
    models: list[str], how: dict[str, Any], batch: str | None, *, chained: bool
) -> Model | list[Model]:
    """Return what to profile: one network, or several that share the units; batches are several."""
    from ...api.models import in_batches, open_each, open_models

    if batch is not None:
        models, how["shapes"] = in_batches(models, how["shapes"], parse_sizes("--batch", batch))
    return open_models(models, **how) if chained else open_each(models, **how)


def _profiled(found: Profile, notes: list[str]) -> Answer:
    from ...view.terminal import running as views

    return Answer(
        document=lambda: {**documents.header("profile"), **documents.plain_data(found)},
        view=lambda: views.profile_view(found),
        notes=notes,
    )


@command
@on_boards()
def run(
    files: FilesArgument,
    *,
    number: NumberOption = None,
    engine: EngineOption = None,
    at: ModelAtOption = None,
    seconds: SecondsOption = None,
    requests: RequestsOption = None,
    warm_up: WarmUpOption = 5,
    task_slots: TaskSlotsOption = None,
    restart: RestartOption = False,
    check: CheckOption = True,
    feed: RunInputOption = None,
    input_range: InputRangeOption = None,
    output: OutputOption = None,
    trace: TraceOption = None,
    local: LocalOption = None,
    address: AddressOption = None,
    allow_no_token: AllowNoTokenOption = False,
    out: Annotated[Path | None, output_option(help="Also write the measurement here.")] = None,
    json: JsonOption = False,
) -> Answer:
    """Run a plan, here or over devices, and measure it beside its prediction: period, latency, receipts."""
    from ...files import run_files
    from ..tasks import running

    for path in (trace, out, output):
        check_writable(path)
    limits = running.budget(seconds, requests, warm_up)
    asked, plan = ask_plan(files, number=number)
    if engine == SIMULATED:
        given = {"--input": feed, "--input-range": input_range, "--output": output}
        running.refuse_without_device({**given, "--at": at, "--restart": restart})
        found, notes = running.run_simulated(asked.problem, plan, limits, task_slots=task_slots, trace=trace)
        notes = [*asked.notes, *notes, *run_files.write_measurement(found, out)]
        return _measured(found, None, notes)
    place = ClusterChoice(local=local, address=address, allow_no_token=allow_no_token)
    with running.opened(
        asked.problem,
        plan,
        engine=engine,
        at=at,
        samples=parse_samples(feed, input_range),
        restarts=int(restart),
        task_slots=task_slots,
        place=place,
        check=check,
    ) as work:
        if feed is not None:
            count = running.run_requests(work, output)
            return _fed(count, output, [*asked.notes, *work.notes], work.losses)
        found, predicted = work.pipeline.measure(limits), work.predicted()
        written = running.write_trace(work.pipeline, trace)
        notes, losses = [*asked.notes, *work.notes, *written], work.losses
    return _measured(found, predicted, [*notes, *run_files.write_measurement(found, out)], losses)


def _fed(count: int, output: Path | None, notes: list[str], losses: Sequence[Loss]) -> Answer:
    return Answer(
        document=lambda: {**documents.header("outputs"), "requests": count, **_lost(losses)},
        view=lambda: Group(Text(f"{count} requests"), *map(_loss_view, losses)),
        notes=[*notes, *([f"wrote {output}"] if output else [])],
    )


def _lost(losses: Sequence[Loss]) -> dict[str, Any]:
    """Return what was lost meanwhile, for documents of clusters; nothing where nothing was."""
    return {"losses": [documents.plain_data(loss) for loss in losses]} if losses else {}


def _loss_view(loss: Loss) -> Text:
    then = f"from then on [{loss.then}] ran" if loss.then else "nothing could go on without it"
    return Text(f"{loss.at}: {loss}; {then}", style="yellow")


def _measured(
    found: Measurement,
    predicted: Measurement | None,
    notes: list[str],
    losses: Sequence[Loss] = (),
) -> Answer:
    from ...view.terminal import running as views

    return Answer(
        document=lambda: {
            **documents.header("measurement"),
            **documents.plain_data(found),
            "predicted_us": None if predicted is None else predicted.period_us,
            **_lost(losses),
        },
        view=lambda: Group(views.measurement_view(found, predicted), *map(_loss_view, losses)),
        notes=notes,
    )


@command
def tools_trace(
    files: FilesArgument,
    *,
    number: NumberOption = None,
    engine: EngineOption = None,
    at: ModelAtOption = None,
    requests: Annotated[int, typer.Option(min=1, max=4096, help="How many requests.")] = 20,
    simulated: Annotated[
        bool, typer.Option("--simulated", help="Play the plan on its table instead of running it.")
    ] = False,
    check: CheckOption = True,
    local: LocalOption = None,
    address: AddressOption = None,
    allow_no_token: AllowNoTokenOption = False,
    out: Annotated[Path, output_option(help="Where it goes.", show_default=True)] = Path("trace.json"),
    json: JsonOption = False,
) -> Answer:
    """Write a trace for ui.perfetto.dev or chrome://tracing: one track a unit, arrows along each request."""
    from ...files import run_files
    from ...view.terminal.gantt import written_view
    from ..tasks import running

    check_writable(out)
    simulated = simulated or engine == SIMULATED
    asked, plan = ask_plan(files, number=number)
    place = ClusterChoice(local=local, address=address, allow_no_token=allow_no_token)
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
    return Answer(
        document=lambda: {**documents.header("trace_file"), "path": str(out), "events": events},
        view=lambda: written_view(found, out),
        notes=[*asked.notes, *notes],
    )
