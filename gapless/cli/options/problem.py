"""Options that several commands share, and what they mean: a problem as the user asks for it."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from ...formulations.deployment import Mode
from ...formulations.errors import GaplessError, InvalidInputError
from ...formulations.passages import Ways
from ...formulations.workload import Execution, RequestOrder
from ..base.answer import takes
from ..base.general_options import heading, output_option
from .solving import SolvingOptions

if TYPE_CHECKING:
    from ...files.plans import NamedPlan
    from ...formulations.problem import Problem

_asked_option = heading("What is asked")

OptionalProblemArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="PROBLEM",
        help="A problem file, or a shipped name such as pixel7a/alexnet-sparse (see `gapless platforms`); a "
        "plan or a folder of `gapless tune` stands for its problem. With --platform and a cluster: a model, "
        "an ONNX file or a built-in network (see `gapless networks`). Not needed with --workload.",
        show_default=False,
    ),
]
FilesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="[PROBLEM] PLAN",
        help="A plan or a list of plans, as written by `gapless plan --out`, a deployment, or a folder of "
        "`gapless tune`; before it the problem, if the plan does not say which one it is for, or is to be "
        "looked at for another one.",
        show_default=False,
    ),
]
NumberOption = Annotated[
    int | None,
    typer.Option("--plan", min=1, help="Which plan of a list, from 1; otherwise the first, the best."),
]
WorkloadOption = Annotated[
    str | None,
    _asked_option(
        help='Requests that share the units: networks with counts, e.g. "yolov4,bertx3"; '
        "mobilenetv2*4 is one request of a batch of 4."
    ),
]
PlatformOption = Annotated[
    str | None,
    _asked_option(
        help="The devices that a model is planned over: a cluster file, or a shipped cluster such as "
        "epipe-case-1; or with --workload, or a network that it has, a shipped platform such as kirin990 "
        "(see `gapless platforms`)."
    ),
]
DevicesOption = Annotated[
    str | None,
    _asked_option(
        metavar="TYPE=NUMBER,...",
        help="How many devices of a type of the cluster there are, e.g. pi5=2,pi4=0; other types stay as "
        "they are.",
    ),
]
BatchOption = Annotated[
    int | None,
    _asked_option(min=1, help="Inferences that pass the devices of a cluster together; otherwise one."),
]
ModelShapeOption = Annotated[
    list[str] | None,
    _asked_option(
        metavar="INPUT=N,C,H,W",
        help="With --platform and an ONNX file: fixed shape of an input with dynamic dimensions; repeatable.",
    ),
]
OrderOption = Annotated[
    RequestOrder | None, _asked_option(help="Whether the order of the requests may be changed.")
]
ExecutionOption = Annotated[
    Execution | None,
    _asked_option(
        metavar="WAY",
        help="How the units keep step: asynchronous (freely), or columns (as in Hetero2Pipe).",
    ),
]
ContentionOption = Annotated[
    str | None,
    _asked_option(
        metavar="FILE",
        help="Measured slowdowns between the units, as written by `gapless contention --out`; instead of "
        "those of the problem.",
    ),
]
StreamOption = Annotated[bool, _asked_option("--stream", help="The requests come over and over.")]
TaskSlotsOption = Annotated[int | None, _asked_option(min=1, help="Most requests on their way at once.")]
CostsOption = Annotated[
    str | None,
    _asked_option(
        help="What layers of a shipped problem cost: heavy (each layer while all units run it; the default), "
        "isolated (alone), interpolated (between both, by how many units a plan uses), or a registered "
        "co-run cost model."
    ),
]
PipelinesOption = Annotated[
    str | None,
    _asked_option(
        metavar="many|one|N",
        help="How many pipelines may run side by side, each on units of its own (replicas are pipelines of "
        "one unit); what is minimised is then the interval between results, unless --objective says more.",
    ),
]
PassageOption = Annotated[
    str | None,
    _asked_option(
        metavar="PASSAGE",
        help="Whether a unit may have several chunks of a request (any), so that requests come back to it, "
        "or one (once). Otherwise any for one network if it is known what a hop costs, as in a profile, and "
        "else once; of a workload any; there also one, in the order of the platform, requests in one order "
        "(ordered), or in this one (ordered:gpu,npu,cpu).",
    ),
]
MaxHopsOption = Annotated[
    int | None, _asked_option(min=0, help="Most borders between chunks: hops from one unit to another.")
]
MaxStreamLatencyOption = Annotated[
    int | None,
    _asked_option(
        min=0,
        help="Largest latency of a request in the stream at the period of the plan, waits included, "
        "microseconds.",
    ),
]
MaxInFlightOption = Annotated[
    int | None,
    _asked_option(min=1, help="Most requests that are on their way at once at the period of the plan."),
]
MaxMakespanOption = Annotated[
    int | None, _asked_option(min=0, help="Latest end of the last request of a workload, microseconds.")
]
MaxRequestLatencyOption = Annotated[
    int | None,
    _asked_option(
        min=0, help="Largest latency of any request of a workload, from its arrival to its end, microseconds."
    ),
]
GroupsOption = Annotated[
    str | None,
    _asked_option(
        metavar="all|N",
        help="With --platform and an ONNX model: groups of at most N devices serve a chunk together, each "
        "computes some rows of its result; layers are then pieces of the network.",
    ),
]
OverGraphOption = Annotated[
    bool,
    _asked_option(
        "--over-graph",
        help="With --groups: chunks begin and end anywhere in the graph of the model, not only between its "
        "pieces; for graphs with few down-sets.",
    ),
]
LayerOrderOption = Annotated[
    str | None,
    _asked_option(
        metavar="fixed|best|free|...",
        help="What plans cut: the given order of the layers (fixed), a better one (best) or this one "
        "(0-2,5,3-4), or the graph (free): convex parts; with --objective latency layers side by side.",
    ),
]
SegmentsOption = Annotated[
    str | None,
    _asked_option(
        metavar="layers|branches", help="What is one task side by side: a layer, or a run of them."
    ),
]
ObjectiveOption = Annotated[
    str | None,
    _asked_option(
        help="What to minimise, most important first: period, gapness, paper_gapness, latency, bubbles, "
        "peak_memory, idle, energy, units, hops, stream_latency, in_flight, and with a workload makespan "
        '(the default there), bottleneck, work, contention, displacement; or "paper", or "slack:50" (least '
        "idle share among plans whose period is within 50 permille of the least one)."
    ),
]
RulesOption = Annotated[
    Path | None,
    _asked_option(
        help="A Python file of rules: every public function in it with one parameter (the view). "
        "The file is run: use only files that you trust."
    ),
]
MaxPeriodOption = Annotated[int | None, _asked_option(min=0, help="Largest period, microseconds.")]
MaxLatencyOption = Annotated[int | None, _asked_option(min=0, help="Largest latency, microseconds.")]
MaxEnergyOption = Annotated[
    int | None,
    _asked_option(
        min=0, help="Largest energy of a request, of a workload of all requests, nanojoules; needs powers."
    ),
]
MinUnitsOption = Annotated[int | None, _asked_option(min=0, help="Fewest units in use.")]
MaxUnitsOption = Annotated[int | None, _asked_option(min=1, help="Most units in use.")]
MinBalanceOption = Annotated[
    str | None,
    _asked_option(metavar="PERCENT", help="Least busy time of a unit in use over the largest one, e.g. 80%."),
]
MaxGapnessOption = Annotated[int | None, _asked_option(min=0, help="Largest gapness, microseconds.")]
MinUtilisationOption = Annotated[
    str | None, _asked_option(metavar="PERCENT", help="Least share of the platform that is busy, e.g. 62.5%.")
]
MaxBubblesOption = Annotated[
    int | None, _asked_option(min=0, help="Largest sum of the bubbles of all units, microseconds.")
]
MaxMemoryOption = Annotated[
    int | None,
    _asked_option("--max-memory", metavar="BYTES", min=1, help="Most that a plan needs at any instant."),
]
MaxUnitMemoryOption = Annotated[
    int | None,
    _asked_option("--max-unit-memory", metavar="BYTES", min=1, help="Most that a chunk needs on its unit."),
]
WindowOption = Annotated[
    list[str] | None,
    _asked_option(
        metavar="NAME=FROM..TO",
        help="When a request of a workload comes, and when it has to be done, milliseconds, e.g. "
        "bert=20..500; either may be left out; of all requests of a network by its name; repeatable.",
    ),
]
OutOption = Annotated[Path | None, output_option("--out", "-o", help="Also write it to this file.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A problem as the command line asks for it."""

    problem: Problem  # the problem, with objective, limits and rules
    origin: dict[str, str]  # how it was named; a plan file keeps that
    task_slots: int | None = None
    """Task slots that were asked for without a workload: they are for who plays the plan."""
    notes: tuple[str, ...] = ()  # what the user should know about it
    once: Callable[[], Asked] | None = None
    """Asks for one chunk per unit, where units may have several only because nothing else was said."""


@dataclass(frozen=True, kw_only=True)
class ProblemOptions:
    """Which problem is asked for, as the argument and the options say it; each field is one of them."""

    problem: OptionalProblemArgument = None
    workload: WorkloadOption = None
    platform: PlatformOption = None
    devices: DevicesOption = None
    batch: BatchOption = None
    shape: ModelShapeOption = None
    order: OrderOption = None
    execution: ExecutionOption = None
    stream: StreamOption = False
    task_slots: TaskSlotsOption = None
    contention: ContentionOption = None
    costs: CostsOption = None
    pipelines: PipelinesOption = None
    passage: PassageOption = None
    groups: GroupsOption = None
    over_graph: OverGraphOption = False
    layer_order: LayerOrderOption = None
    segments: SegmentsOption = None
    objective: ObjectiveOption = None
    rules: RulesOption = None
    max_period_us: MaxPeriodOption = None
    max_latency_us: MaxLatencyOption = None
    max_energy_nj: MaxEnergyOption = None
    min_units: MinUnitsOption = None
    max_units: MaxUnitsOption = None
    min_balance: MinBalanceOption = None
    max_gapness_us: MaxGapnessOption = None
    min_utilisation: MinUtilisationOption = None
    max_bubbles_us: MaxBubblesOption = None
    max_memory_bytes: MaxMemoryOption = None
    max_unit_memory_bytes: MaxUnitMemoryOption = None
    max_hops: MaxHopsOption = None
    max_stream_latency_us: MaxStreamLatencyOption = None
    max_in_flight: MaxInFlightOption = None
    max_makespan_us: MaxMakespanOption = None
    max_request_latency_us: MaxRequestLatencyOption = None
    window: WindowOption = None


def ask(options: ProblemOptions) -> Asked:
    """Return the problem with the objective, limits and rules of the command line."""
    from ...files.plans import problem_named

    named = problem_named(_given(options), remembered=options.rules is None)
    once = partial(ask, replace(options, passage=Ways.ONCE)) if named.free else None
    try:
        return replace(_asked(named.problem, options, dict(named.asked), named.notes), once=once)
    except GaplessError as error:
        if once is None:
            raise
        return _in_once(once, str(error))


def _in_once(once: Callable[[], Asked], why: str) -> Asked:
    """Return what is asked with one chunk per unit, and say why."""
    from ...files.origins import once_note

    found = once()
    return replace(found, notes=(*found.notes, once_note(why)))


def _for_backends(asked: Asked, given: Mapping[str, Any]) -> Asked:
    """Return what is asked with one chunk per unit, where that is all that some named backend knows.

    `given`: the other options of the command.
    """
    if asked.once is None:
        return asked
    if given.get("layer_orders") is not None:
        return _in_once(asked.once, "--layer-orders compares plans of that kind")
    from ...solvers.registry import get_backends

    names = [*(given.get("backends") or "").split(","), given.get("backend") or ""]
    abilities = {
        one.name: one.capabilities for one in get_backends([name.strip() for name in names if name.strip()])
    }
    lacking = [name for name, able in abilities.items() if able.support(asked.problem) is None]
    once = asked.once().problem if lacking else asked.problem
    lacking = [name for name in lacking if not abilities[name].missing(once)]
    return _in_once(asked.once, f"{', '.join(lacking)} can plan no others") if lacking else asked


def ask_plan(
    files: Sequence[str], options: ProblemOptions = ProblemOptions(), number: int | None = None
) -> tuple[Asked, NamedPlan]:
    """Return the problem and the plan of [PROBLEM] PLAN.

    What is given counts, and what is not given is as it was when the plan was made.

    `files`: a plan file, a list, a deployment or the folder of a run; the problem may stand before it.
    `number`: which plan of a list is meant; None: the best.
    """
    from ...files.plans import named_plan, problem_of_plan

    if len(files) > 2:
        raise InvalidInputError(f"give a problem and a plan, or a plan alone; got {' '.join(files)}")
    if len(files) == 2:
        options = replace(options, problem=files[0])
    named, given = named_plan(files[-1], number), _given(options)
    problem, notes = problem_of_plan(named, given, remembered=options.rules is None)
    return _asked(problem, options, given, (*named.notes, *notes)), named


def _given(options: ProblemOptions) -> dict[str, str]:
    from ...files.origins import origin_of

    several = {name: " ".join(getattr(options, name) or ()) or None for name in ("shape", "window")}
    given = {**vars(options), **several}
    return origin_of(
        **{**given, "over_graph": options.over_graph or None}, mode=Mode.STREAM if options.stream else None
    )


def _asked(
    problem: Problem, options: ProblemOptions, origin: dict[str, str], notes: tuple[str, ...] = ()
) -> Asked:
    from ...files.rules_file import add_rules

    return Asked(
        problem=problem if options.rules is None else add_rules(problem, options.rules),
        origin=origin,
        task_slots=options.task_slots if problem.formulation.one_network else None,
        notes=notes,
    )


def asking(command: Callable[..., Any], *, of_many: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Return a command whose first parameter `asked` becomes those of `ProblemOptions`.

    Where its parameter `instances` is given, `of_many` answers in its place, which gets the `ProblemOptions`.

    A second parameter `plan` makes the arguments one list, [PROBLEM] PLAN, of which it gets the plan; the
    option --plan chooses one of several. A command that plays plans has a parameter `task_slots`. In the
    place of a parameter `solving` stand those of `SolvingOptions`.
    """
    shared, own = _parameters(ProblemOptions), _parameters(command)
    own.pop("asked")
    argument, *others = shared.values()
    takes_plan = own.pop("plan", None) is not None
    if takes_plan:
        argument = inspect.Parameter("files", argument.kind, annotation=FilesArgument)
        number = inspect.Parameter("number", argument.kind, default=None, annotation=NumberOption)
        own = {"number": number, **own}
    plays = own.pop("task_slots", None) is not None
    solving = _parameters(SolvingOptions) if "solving" in own else {}

    @wraps(command)
    def asked(**given: Any) -> Any:
        files, number = given.pop("files", []), given.pop("number", None)
        options = ProblemOptions(**{name: given.pop(name, None) for name in shared})
        if solving:
            given["solving"] = SolvingOptions(**{name: given.pop(name) for name in solving})
        if of_many is not None and given["instances"] is not None:
            return of_many(options, **given)
        answer, plan = (
            ask_plan(files, options, number) if takes_plan else (_for_backends(ask(options), given), None)
        )
        if plays:
            given["task_slots"] = answer.task_slots
        elif answer.task_slots is not None:
            raise InvalidInputError("--task-slots is about a workload: give --workload, or use simulate")
        found = command(answer, **given) if plan is None else command(answer, plan, **given)
        return replace(found, notes=(*answer.notes, *found.notes)) if answer.notes else found

    parameters = [argument, *others]
    for name, parameter in own.items():
        parameters += solving.values() if name == "solving" else [parameter]
    takes(asked, (parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters))
    return asked


def check_writable(path: Path | None) -> None:
    """Refuse a place for a result before the work is done, not after it."""
    if path is None:
        return
    if path.is_dir():
        raise InvalidInputError(f"cannot write {path}: it is a folder")
    if not os.access(path.parent, os.W_OK):
        reason = "may not be written to" if path.parent.is_dir() else "does not exist"
        raise InvalidInputError(f"cannot write {path}: the folder {path.parent} {reason}")


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    # Commands name what they get in the place of arguments, and do not load it: no option is of this type.
    hints = get_type_hints(function, localns={"NamedPlan": object}, include_extras=True)
    parameters = inspect.signature(function).parameters
    return {name: p.replace(annotation=hints[name]) for name, p in parameters.items()}
