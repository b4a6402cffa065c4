"""Where problems come from: shipped tables, files, and plain tables of milliseconds."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypedDict

from ..formulations.cluster import Pipelines, parse_pipelines
from ..formulations.costs import CostTable, Interference, NetworkCosts, Provenance
from ..formulations.deployment import Mode
from ..formulations.errors import GaplessError, InvalidInputError, InvalidProblemError, SchemaVersionError
from ..formulations.files import INTERFERENCE, load
from ..formulations.files import load_problem as load_problem_file
from ..formulations.hardware import Platform, ProcessingUnit
from ..formulations.json_files import format_of, load_tree
from ..formulations.network import Layer, Network, State
from ..formulations.passages import Passage, passage_of
from ..formulations.problem import Problem
from ..formulations.schedules import ORDERED, Jobs, as_schedules, free_schedules
from ..formulations.terms import Objective
from ..formulations.validation import Defects, meant, near, shown
from ..formulations.workload import Execution, LoadPolicy, RequestOrder, Workload, requests_of, with_windows
from ..profiler.platforms.catalog import DEFAULT_METHOD, is_shipped_name, shipped_names, shipped_problem

Millis = float | int | None


def load_problem(name: str | Path, *, costs: str | None = None) -> Problem:
    """Return a shipped problem by name, or read a problem file.

    Parameters
    ----------
    name
        A shipped name such as "pixel7a/alexnet-sparse" (`gapless list problems` lists them), or the path
        of a file: a problem, or a layer graph in the JSON format of device placement
        (`import_placement`). A path that exists wins over a name.
    costs
        Co-run cost model of a shipped problem: "heavy" (each layer measured while all units run it; the
        default), "isolated" (alone), "interpolated" (between both, by how many units a plan uses), or a
        registered one.

    Raises
    ------
    InvalidInputError
        There is no such name or file, or its content is not valid.

    Examples
    --------
    >>> import gapless
    >>> gapless.load_problem("pixel7a/alexnet-sparse")
    <Problem alexnet-sparse on pixel7a: 9 layers, 4 units, objective period,gapness>
    >>> alone = gapless.load_problem("pixel7a/alexnet-sparse", costs="isolated")
    >>> alone.costs.of("alexnet-sparse").layer_us[0]  # of its first layer on each unit, microseconds
    (19349, 6004, 4615, 8334)
    """
    if not os.path.exists(name):  # which, unlike Path.exists, says no to names that no file can have
        if is_shipped_name(str(name)):
            return shipped_problem(str(name), method=costs or DEFAULT_METHOD)
        raise InvalidInputError(_no_such_problem(str(name)))
    if costs is not None:
        raise InvalidInputError(
            f"costs={costs!r} chooses between the tables of a shipped problem; {name} is a file"
        )
    try:
        return load_problem_file(name)
    except SchemaVersionError:
        from ..profiler.placement_files import import_placement, is_placement

        if not is_placement(load_tree(name)):
            raise
        return import_placement(name)


def given_problem(problem: Problem | str | Path) -> Problem:
    """Return a problem that may be given by name, or as a file; errors as for `load_problem`."""
    return problem if isinstance(problem, Problem) else load_problem(problem)


class ServiceWords(TypedDict, total=False):
    """How the requests of a workload are served, as for `load_workload`."""

    problem: Problem | str | Path | None
    platform: str | None
    costs: str | None
    order: RequestOrder
    mode: Mode
    execution: Execution
    load_policy: LoadPolicy | None
    task_slots: int | None
    contention: str | Path | None
    windows: Mapping[str, tuple[int, int | None]] | None
    objective: str | Objective
    passage: str | None


def load_workload(
    text: str,
    *,
    problem: Problem | str | Path | None = None,
    platform: str | None = None,
    costs: str | None = None,
    order: RequestOrder = RequestOrder.FREE,
    mode: Mode = Mode.BATCH,
    execution: Execution = Execution.ASYNCHRONOUS,
    load_policy: LoadPolicy | None = None,
    task_slots: int | None = None,
    contention: str | Path | None = None,
    windows: Mapping[str, tuple[int, int | None]] | None = None,
    objective: str | Objective = "makespan",
    passage: str | None = None,
) -> Problem:
    """Return the problem of serving several requests at once.

    Parameters
    ----------
    text
        The requests: networks with counts, e.g. "yolov4,bert,mobilenetv2x3"; "mobilenetv2*4" is one
        request of a batch of 4 (on shipped platforms).
    problem
        A problem whose networks, costs and interference are used, itself or as for `load_problem`; e.g. the
        file that a profile of several networks was written to.
    platform
        Or the name of a shipped platform ("kirin990").
    costs
        As for `load_problem`.
    order, mode, execution, load_policy, task_slots
        How the requests are served; see `Workload`. `load_policy` None: all weights resident, and on the
        shipped phones those of running chunks, as in Hetero2Pipe.
    contention
        A file of `gapless costs contention --out`, measured or estimated, whose slowdowns take the place of
        those of the problem.
    windows
        From names of requests to when they come and when they have to be done, microseconds from the start;
        None for no end.
    objective
        As for `plan`.
    passage
        How requests pass the units, as for `with_passage`; None: "any" where schedules know all that is
        asked (`with_free_passage`), else "ordered".

    Raises
    ------
    InvalidInputError
        A name is not known, a window ends before it begins, or the text is not a list of requests.

    Examples
    --------
    >>> import gapless
    >>> workload = gapless.load_workload("yolov4,bert,mobilenetv2x3", platform="kirin990")
    >>> [request.name for request in workload.data.requests]
    ['yolov4', 'bert', 'mobilenetv2#1', 'mobilenetv2#2', 'mobilenetv2#3']
    """
    if (problem is None) == (platform is None):
        raise InvalidInputError(
            "a workload needs either a problem that has its networks or a platform, "
            'e.g. --workload "yolov4,bert,mobilenetv2x3" --platform kirin990'
        )
    if platform is not None:
        from ..profiler.clusters.catalog import cluster_names
        from ..profiler.platforms.workloads import shipped_workload

        if platform in cluster_names():
            raise InvalidInputError(
                f"the cluster {platform!r} takes one network: leave the workload away, e.g. "
                f"`gapless plan vit-large --platform {platform}`"
            )
        if costs is not None:
            raise InvalidInputError(f"costs={costs!r} chooses between the tables of a shipped problem")
        base = shipped_workload(platform, text)
    else:
        made = problem if isinstance(problem, Problem) else load_problem(str(problem), costs=costs)
        base = with_workload(made, text)
    given = base.data
    assert isinstance(given, Workload)
    served = replace(
        given,
        order=order,
        mode=mode,
        execution=execution,
        load_policy=given.load_policy if load_policy is None else load_policy,
        task_slots=task_slots,
    )
    if contention is not None:
        base = replace(base, interference=_slowdowns(contention))
    served = served if windows is None else with_windows(served, windows)
    asked = replace(base, data=served).with_objective(objective)
    return with_free_passage(asked) if passage is None else with_passage(asked, passage)


def _slowdowns(path: str | Path) -> Interference:
    """Return what a file says of slowdown: measured, or estimated."""
    from ..profiler.slowdown.contention.result import CONTENTION

    if format_of(path) == INTERFERENCE.format:
        return load(path, INTERFERENCE)
    return load(path, CONTENTION).interference


def with_workload(problem: Problem, text: str) -> Problem:
    """Return a problem with the requests that a text names, all of networks that it has.

    Its objective becomes the least makespan.

    Raises
    ------
    InvalidInputError
        The text is not a list of requests, or names a network that is not there.
    """
    requests = requests_of(text, [network.name for network in problem.networks])
    return replace(problem, data=Workload(requests=requests), objective=Objective(terms=("makespan",)))


def with_pipelines(
    problem: Problem, pipelines: Pipelines | str | int = "many", *, objective: str | Objective | None = None
) -> Problem:
    """Return a problem of one network with its units, or devices, in pipelines side by side.

    Its plans are one pipeline or several, each on units of its own; replicas are pipelines of one unit.

    Parameters
    ----------
    problem
        A problem of one network: units and costs, or pipelines already.
    pipelines
        How many there may be: "many", "one" or a number; or `Pipelines`: links, and what else is asked.
    objective
        As for `plan`. None: that of the problem if it says more than the least period; otherwise the
        throughput.

    Raises
    ------
    InvalidInputError
        The number is not valid; or the problem is of another kind, or has rules, which are about other plans.
    InvalidProblemError
        The problem asks something that has no meaning for pipelines.

    Examples
    --------
    >>> import gapless
    >>> problem = gapless.table_problem({"conv": [4.0, 6.0], "fc": [2.0, 3.0]}, ["cpu", "gpu"])
    >>> result = gapless.plan(gapless.with_pipelines(problem), backend="exhaustive")
    >>> str(result.plan), result.candidates[0].score.throughput
    ('pipeline 1: 0-1 cpu; pipeline 2: 0-1 gpu', 277.77777777777777)
    """
    own = pipelines_of(problem, "pipelines", of_pipelines=True)
    if isinstance(pipelines, Pipelines):
        data = pipelines
    else:
        data = replace(own or Pipelines(), most=parse_pipelines(pipelines))
    wanted = Objective.parse(objective) if isinstance(objective, str) else objective
    if wanted is None:
        usual = problem.objective == Objective()
        wanted = Objective(terms=("throughput",)) if usual else problem.objective
    return replace(problem, data=data, objective=wanted)


def with_states(problem: Problem, states: Mapping[str, str]) -> Problem:
    """Return a problem of a recurrent network: each request of its stream needs what the last one left.

    What reads a state and what makes the next one are in one chunk, so no plan overlaps what a recurrence
    orders, and periods hold as they are; what lies between cannot be divided among units.

    Parameters
    ----------
    problem
        A problem of one network.
    states
        By input of the network that takes a state, the output that gives the next one.

    Raises
    ------
    InvalidInputError
        It has several networks, or no such input or output; or its plans are not a stream of one network.

    Examples
    --------
    >>> import gapless
    >>> problem = gapless.load_problem("gru.json")  # doctest: +SKIP
    >>> gapless.plan(gapless.requests.with_states(problem, {"h": "h_out"}))  # doctest: +SKIP
    """
    if len(problem.networks) != 1:
        raise InvalidInputError(
            f"states are kept by a stream of one network, the problem has {len(problem.networks)}"
        )
    return replace(problem, networks=(problem.network.with_states(states_of(states)),))


def states_of(states: Mapping[str, str]) -> list[State]:
    """Return states, which are given by the inputs that take them."""
    if not isinstance(states, Mapping) or not all(
        isinstance(name, str) for pair in states.items() for name in pair
    ):
        raise InvalidInputError(
            f"states are given as {{input: output}}, like {{'h': 'h_out'}}, not {states!r}"
        )
    return [State(input=taken, output=made) for taken, made in states.items()]


def with_passage(problem: Problem, passage: str = "any") -> Problem:
    """Return a problem whose requests pass the units in another way.

    Parameters
    ----------
    problem
        A problem of one network, without or with a passage, of a workload, or of single requests. Its
        objective, limits and rules stay; a workload becomes single requests that may be cut anywhere, its
        deadlines become rules; "ordered" leaves it as it is.
    passage
        "any": requests may come back to units; "once": each unit has at most one chunk of a request. For
        several requests also "ordered": the same, in the order of the platform, and all units of a workload
        serve its requests in one order; or in the given order ("ordered:gpu,npu").

    Raises
    ------
    InvalidInputError
        The passage is not known, or the problem is of another kind, or asks what has no meaning with it.
    InvalidProblemError
        A rule speaks of what only the other passage has.

    Examples
    --------
    >>> import gapless
    >>> problem = gapless.table_problem({"a": [1.0, 9.0], "b": [9.0, 2.0], "c": [1.0, 9.0]}, ["npu", "cpu"])
    >>> gapless.plan(problem).candidates[0].score.period_us
    10000
    >>> result = gapless.plan(gapless.with_passage(problem))
    >>> str(result.plan), result.candidates[0].score.period_us
    ('0-0 npu | 1-1 cpu | 2-2 npu', 2000)
    """
    if isinstance(problem.data, Workload):
        return problem if passage == ORDERED else as_schedules(problem, passage)
    if isinstance(problem.data, Jobs):
        return problem.with_data(replace(problem.data, passage=passage))
    data = passage_of(passage)
    if problem.data is not None and not isinstance(problem.data, Passage):
        raise InvalidInputError(
            "a passage is that of one network or of several requests; "
            f"{problem.formulation.label} are about something else"
        )
    return problem if problem.data == data else problem.with_data(data)


def with_free_passage(problem: Problem) -> Problem:
    """Return a problem whose requests pass the units in any way, where that is known to be right.

    A workload as schedules, unless it asks what they do not know: a stream, columns, one fixed order for all
    units, objectives or limits such as bubbles. One network with any number of
    chunks per unit, if its costs say what a hop takes (`CostTable.knows_hops`: those of a profile do, and
    copies in a table that you wrote), unless its objective, which is that of the paper, or a rule needs one
    chunk per unit. Anything else is returned as it is.

    Parameters
    ----------
    problem
        Any problem.

    Examples
    --------
    >>> import gapless
    >>> problem = gapless.load_problem("pixel7a/alexnet-sparse")  # of the paper: it has no costs of hops
    >>> gapless.requests.with_free_passage(problem) is problem
    True
    """
    if isinstance(problem.data, Workload):
        return free_schedules(problem) or problem
    return problem if once_because(problem) is not None else problem.with_data(Passage())


def once_because(problem: Problem) -> str | None:
    """Return why plans have one chunk per unit where no passage is asked for; None: they may have several.

    Empty: nothing is known of what hops cost, or the problem is not about one network in a chain of chunks.
    """
    if problem.data is not None or len(problem.networks) != 1 or not problem.costs.knows_hops:
        return ""
    if Objective.paper().first in problem.objective.terms:
        return "the gapness of the paper is that of one chunk per unit"
    try:
        problem.with_data(Passage())
    except GaplessError as error:
        return str(error)
    return None


def pipelines_of(problem: Problem, plans: str, *, of_pipelines: bool = False) -> Pipelines | None:
    """Return the pipelines of a problem of one network whose plans become others; None: it has chunks alone.

    `plans`: what these will be; `of_pipelines`: those of pipelines, whose rules stay where it has some.
    Raises InvalidInputError: it is about something else, or has rules, which are about other plans.
    """
    own = problem.data if isinstance(problem.data, Pipelines) else None
    if problem.data is not None and own is None:
        raise InvalidInputError(
            f"{plans} are of one network; {problem.formulation.label} are about something else"
        )
    if problem.rules and not (of_pipelines and own is not None):
        names = ", ".join(repr(rule.name) for rule in problem.rules)
        raise InvalidInputError(
            f"{plans} are plans of another shape, and the rules of the problem are not about them: {names}; "
            "write the problem without rules and give them again"
        )
    return own


def _no_such_problem(name: str) -> str:
    from ..profiler.clusters.catalog import cluster_names
    from ..profiler.coordination.catalog import coordinated_phone_names
    from ..profiler.platforms.workloads import phone_names
    from ..profiler.zoo.catalog import names_in_parts
    from .models import built_in_names

    if name in cluster_names():
        return (
            f"{name!r} is a cluster, not a problem: `gapless plan MODEL --platform {name}` plans a model "
            "over its devices"
        )
    if name in names_in_parts():
        return (
            f"{name!r} is a built-in network, not a problem: `gapless plan {name} --platform epipe-case-1` "
            "plans it over the devices of a cluster"
        )
    if name in built_in_names():
        return (
            f"{name!r} is a built-in network, not a problem: `gapless profile {name}` measures it here and "
            f"writes gapless-out/problem.json, which can be planned; `gapless tune {name}` does all of it"
        )
    if name in phone_names():
        return (
            f"{name!r} is a platform for workloads, not a problem: "
            f'--workload "yolov4,bert" --platform {name} names one'
        )
    if name in coordinated_phone_names():
        return (
            f"{name!r} is a phone for requests as they come, not a problem: `gapless requests coordinate "
            f"eagleeye --platform {name}` serves some"
        )
    if near(name, shipped_names()):
        hint = meant(name, shipped_names())
    elif near(name, built_in_names()):
        hint = meant(name, built_in_names())
    else:
        hint = "`gapless list problems` lists the shipped ones"
    return f"{shown(name)} is neither a file nor the name of a shipped problem; {hint}"


def table_problem(
    times_ms: Mapping[str, Sequence[Millis]] | Sequence[Sequence[Millis]],
    units: Sequence[str | ProcessingUnit],
    *,
    network: str = "network",
    platform: str = "platform",
    objective: str | Objective = Objective(),
    source: str = "",
) -> Problem:
    """Return a problem straight from a table of milliseconds.

    Parameters
    ----------
    times_ms
        Rows of one time a unit: a mapping from layer names, or a sequence (layers are then named
        layer0, layer1, ...). None: the unit cannot run the layer. Times are rounded to whole
        microseconds, and to 1 us if they are shorter than that.
    units
        Names of the columns, or `ProcessingUnit`s.
    network, platform
        Names.
    objective
        As for `plan`.
    source
        Where the times come from.

    Raises
    ------
    InvalidProblemError
        The table is empty or ragged, or a time is zero, negative or not finite; every row is named.

    Examples
    --------
    >>> import gapless
    >>> problem = gapless.table_problem({"conv": [9.0, 2.0], "fc": [1.0, None]}, ["cpu", "gpu"])
    >>> str(gapless.plan(problem).plan)
    '0-0 gpu | 1-1 cpu'
    """
    if isinstance(times_ms, Mapping):
        rows = dict(times_ms)
    else:
        rows = {f"layer{index}": row for index, row in enumerate(times_ms)}
    if isinstance(units, str):
        raise InvalidProblemError(f"units is {units!r}, must be a list of names, e.g. [{units!r}]")
    built = tuple(u if isinstance(u, ProcessingUnit) else ProcessingUnit(name=u) for u in units)
    defects = Defects("the table of times")
    layer_us = tuple(_row_us(name, row, len(built), defects) for name, row in rows.items())
    defects.raise_as(InvalidProblemError)
    names = tuple(unit.name for unit in built)
    problem = Problem(
        platform=Platform(name=platform, units=built),
        networks=(Network(name=network, layers=tuple(Layer(name=str(name)) for name in rows)),),
        costs=CostTable(
            units=names,
            networks=(NetworkCosts(network=network, layer_us=layer_us),),
            provenance=Provenance(source=source, method="table of milliseconds"),
        ),
    )
    return problem.with_objective(objective)


def _row_us(name: str, row: Sequence[Millis], width: int, defects: Defects) -> tuple[int | None, ...]:
    if isinstance(row, str) or not isinstance(row, Sequence):
        row = list(row) if hasattr(row, "__iter__") and not isinstance(row, str) else [row]
    if len(row) != width:
        defects.add(f"row {name!r} has {len(row)} times, needs one for each of the {width} units")
    return tuple(_time_us(name, column, value, defects) for column, value in enumerate(row))


def _time_us(name: str, column: int, value: Millis, defects: Defects) -> int | None:
    if value is None:
        return None
    try:
        millis = float(value)
    except OverflowError:
        millis = math.inf
    except (TypeError, ValueError):
        defects.add(f"row {name!r}, column {column}: {value!r} is not a number")
        return None
    if not math.isfinite(millis) or millis <= 0:
        defects.add(
            f"row {name!r}, column {column}: {millis:g} ms; a time is greater than 0 "
            "(leave it out, as None, where the unit cannot run the layer)"
        )
        return None
    return max(1, round(millis * 1000))
