"""How a problem is named, and what is asked of it.

By a file or a shipped name, by a model and the cluster that it runs over, or by requests on a platform.

A plan file keeps the origin of its problem, so that `gapless simulate PLAN` finds it again, with its rules.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..api.layer_orders import with_layer_order
from ..api.models import is_code
from ..api.problems import (
    load_problem,
    load_workload,
    once_because,
    with_free_passage,
    with_passage,
    with_pipelines,
)
from ..api.side_by_side import Segments, with_side_by_side
from ..formulations.deployment import Mode
from ..formulations.errors import InvalidInputError
from ..formulations.files import Origin, with_written_rules
from ..formulations.job_requests import ORDERED, Jobs
from ..formulations.network import Network
from ..formulations.objective import PERIOD, Objective
from ..formulations.passages import Passage
from ..formulations.plugins import require_trusted, trust
from ..formulations.problem import Problem
from ..formulations.reordering import order_words
from ..formulations.validation import MAX_NAME_LENGTH
from ..formulations.workload import Execution, RequestOrder, Workload
from ..profiler.platforms.catalog import is_shipped_name

if TYPE_CHECKING:
    from ..api.models import Shapes

NAMES = (
    "problem",
    "workload",
    "platform",
    "devices",
    "batch",
    "shape",
    "order",
    "execution",
    "mode",
    "task_slots",
    "contention",
    "costs",
    "pipelines",
    "passage",
    "groups",
    "over_graph",
    "layer_order",
    "segments",
    "objective",
    "max_period_us",
    "max_latency_us",
    "max_energy_nj",
    "min_units",
    "max_units",
    "min_balance",
    "max_gapness_us",
    "min_utilisation",
    "max_bubbles_us",
    "max_memory_bytes",
    "max_unit_memory_bytes",
    "max_hops",
    "max_stream_latency_us",
    "max_in_flight",
    "max_makespan_us",
    "max_request_latency_us",
    "window",
)
"""Options that say which problem is meant, and what is asked of it."""

_COUNTS = (
    "task_slots", "max_period_us", "max_latency_us", "max_energy_nj", "min_units", "max_units",
    "max_gapness_us", "max_bubbles_us", "max_memory_bytes", "max_unit_memory_bytes", "max_hops",
    "max_stream_latency_us", "max_in_flight", "max_makespan_us", "max_request_latency_us",
)  # fmt: skip
"""Whole numbers; the limits of a problem among them stand behind the first."""

_PERCENTAGES = ("min_balance", "min_utilisation")

_FREE_ONE, _FREE_SEVERAL = "any, or else once", "any, or else ordered"
"""The passage where none is given, of one network and of a workload: what is asked, and known, decides
(`with_free_passage`)."""

_WINDOW = re.compile(r"(.+)=(\d{1,9}(?:\.\d{1,3})?)?\.\.(\d{1,9}(?:\.\d{1,3})?)?", re.ASCII)
_PERCENT = re.compile(r"(\d{1,3})(?:\.(\d))?\s?%", re.ASCII)
_SERVICE = ("order", "execution", "mode", "contention", "window")
"""What only a workload has."""

_OVER_DEVICES = ("devices", "batch", "shape", "groups", "over_graph")
"""What only a problem over devices has."""


def origin_of(**given: object) -> dict[str, str]:
    """Return what the user gave of an origin, as texts."""
    asked = {name: str(given[name]) for name in NAMES if given.get(name) is not None}
    trust(asked.get("problem", ""))
    return asked


def with_usual_passage(asked: Mapping[str, str]) -> Mapping[str, str]:
    """Return what is asked of a new problem: where no passage is given, what is asked and known decides.

    A problem file about a workload is about its requests, whoever wrote it: they, too, pass units in any way
    unless they ask what only one order knows. Files of plans that name no passage are about one chunk per
    unit, those of workloads about `ordered`.
    """
    return {"passage": _FREE_SEVERAL if "workload" in asked else _FREE_ONE, **asked}


def require_known(asked: Mapping[str, str]) -> None:
    """Refuse what was asked in words that this gapless does not know."""
    unknown = sorted(set(asked) - set(NAMES))
    if unknown:
        name = unknown[0][:MAX_NAME_LENGTH]
        raise InvalidInputError(
            f"the plan file names its problem by {name!r}, which this gapless does not know"
        )


def on_problem(origin: Origin, problem: str) -> Origin:
    """Return an origin with another problem: the workload that was asked for, on other costs and units.

    Rules are about the layers and units of one problem, and are left behind.
    """
    service = {name: text for name, text in origin.asked.items() if name != "platform"}
    return Origin(asked={**service, "problem": problem})


def problem_of(origin: Origin) -> Problem:
    """Return the problem that an origin names, with its objective, limits and rules.

    Raises InvalidInputError: it names nothing, or something that is not there; an objective, a limit or a
    rule is not valid.
    """
    return with_remembered_rules(asked_problem(origin.asked), origin)


def asked_problem(asked: Mapping[str, str], network: Network | None = None) -> Problem:
    """Return the problem that was asked for, with its objective and limits; errors as for `problem_of`.

    `asked`: what was given, by the name of an option (`origin_of`). `network`: the model that is named with a
    cluster, where it was opened before; None: it is opened.
    """
    problem = _named(asked, network)
    if asked.get("layer_order") == "free":
        _refuse(asked, ("pipelines", "groups"), "chunks of one order: leave --layer-order away")
        problem = _in_any_order(problem, asked)
    else:
        _refuse(asked, ("segments",), "layers side by side: give --layer-order free --objective latency, too")
        problem = with_layer_order(problem, asked.get("layer_order", "fixed"))
    if "pipelines" in asked:
        problem = with_pipelines(problem, asked["pipelines"])
    if "passage" in asked and not _is_free(asked):
        problem = with_passage(problem, asked["passage"])
    if "objective" in asked:
        problem = problem.with_objective(asked["objective"])
    limits = {name: _count(name, asked[name]) for name in _COUNTS[1:] if name in asked}
    limits |= {
        f"{name}_permille": parse_permille(f"--{name.replace('_', '-')}", asked[name])
        for name in _PERCENTAGES
        if name in asked
    }
    problem = problem.with_limits(**limits) if limits else problem
    if asked.get("passage") == _FREE_ONE and not isinstance(problem.data, Workload | None):
        return problem  # of schedules, or of another shape: it says itself how units are passed
    return with_free_passage(problem) if _is_free(asked) else problem


def _is_free(asked: Mapping[str, str]) -> bool:
    return asked.get("passage") in (_FREE_ONE, _FREE_SEVERAL)


def _in_any_order(problem: Problem, asked: Mapping[str, str]) -> Problem:
    """Return what any order of the layers is free for: the latency of one request, or else the period."""
    if Objective.parse(asked.get("objective", PERIOD)).first == "latency":
        return with_side_by_side(problem, segments=asked.get("segments", Segments.LAYERS))
    _refuse(asked, ("segments",), "layers side by side: give --objective latency, too")
    return with_layer_order(problem, "free")


def settled(asked: Mapping[str, str], problem: Problem) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """Return what was asked with what was chosen for it, the passage and the order of the layers; and notes.

    A plan is about these, whatever would be chosen another time.
    """
    notes: tuple[str, ...] = ()
    free = _is_free(asked)
    if free and isinstance(problem.data, Workload | Jobs):
        asked = {**asked, "passage": problem.data.passage if isinstance(problem.data, Jobs) else ORDERED}
    elif free:
        again = {"passage": str(problem.data.ways)} if isinstance(problem.data, Passage) else {}
        asked = {name: text for name, text in asked.items() if name != "passage"} | again
        notes = _passage_notes(asked, problem)
    if asked.get("layer_order") != "best":
        return asked, notes
    network = problem.network
    asked = {**asked, "layer_order": order_words(network.order) or "fixed"}
    return asked, (*notes, order_note(network))


def _passage_notes(asked: Mapping[str, str], problem: Problem) -> tuple[str, ...]:
    """Return what to say about the passage of one network that was chosen because none was given."""
    if not problem.costs.knows_hops:
        return ()
    if isinstance(problem.data, Passage):
        return ("units may have several chunks, as what a hop costs is known; --passage once allows one",)
    shaped = [f"--{name.replace('_', '-')}" for name in ("pipelines", "layer_order") if name in asked]
    why = once_because(problem) or (f"{shaped[0]} has no other plans" if shaped else "")
    return (once_note(why),) if why else ()


def once_note(why: str) -> str:
    """Return that units have one chunk each, although it is known what a hop costs."""
    return f"what a hop costs is known, but units have one chunk each (--passage once): {why}"


def order_note(network: Network) -> str:
    """Return which order of the layers was found to be the best, in words."""
    if not network.order:
        return "no better order of the layers was found than theirs"
    return f"the layers are in the order {order_words(network.order)}: chunks count in it"


def with_remembered_rules(problem: Problem, origin: Origin) -> Problem:
    """Return a problem with the rules that a plan file remembers and that it does not have already."""
    own = {rule.name for rule in problem.rules}
    try:
        return with_written_rules(problem, [rule for rule in origin.rules if rule.name not in own])
    except InvalidInputError as error:
        raise InvalidInputError(
            "the problem has changed since the plan was made; give its rules again with --rules:",
            error.problems,
        ) from None


def forgotten(origin: Origin, problem: Problem) -> tuple[str, ...]:
    """Return what to say about rules that a plan file could not keep, and its problem has not."""
    known = {rule.name for rule in problem.rules}
    names = ", ".join(repr(name) for name in origin.opaque_rules if name not in known)
    if not names:
        return ()
    return (f"the plan was made with opaque rules, which no file can keep: {names}; add them with --rules",)


def _named(asked: Mapping[str, str], network: Network | None) -> Problem:
    if "workload" in asked:
        _refuse(asked, _OVER_DEVICES, "one network over devices: leave --workload away")
        return load_workload(
            asked["workload"],
            problem=asked.get("problem"),
            platform=asked.get("platform"),
            costs=asked.get("costs"),
            order=_choice("order", RequestOrder, asked, RequestOrder.FREE),
            execution=_choice("execution", Execution, asked, Execution.ASYNCHRONOUS),
            mode=_choice("mode", Mode, asked, Mode.BATCH),
            task_slots=_count("task_slots", asked.get("task_slots")),
            contention=asked.get("contention"),
            windows=parse_windows(asked["window"].split()) if "window" in asked else None,
            passage=ORDERED,
        )
    _refuse(
        asked,
        _SERVICE,
        'a workload: give --workload too, e.g. --workload "yolov4,bert,mobilenetv2x3"',
    )
    shipped = f"{asked.get('platform')}/{asked.get('problem')}"
    if "platform" in asked and is_shipped_name(shipped):
        asked = {name: text for name, text in asked.items() if name != "platform"} | {"problem": shipped}
    if "problem" not in asked:
        raise InvalidInputError(
            "no problem is named: give a problem file or a shipped name (`gapless platforms` lists them), "
            "a model with --platform and a cluster, or --workload with --platform"
        )
    if "platform" in asked:
        return _over_devices(asked, network)
    _refuse(asked, _OVER_DEVICES, "a network over devices: give --platform too, e.g. --platform epipe-case-1")
    return load_problem(asked["problem"], costs=asked.get("costs"))


def _over_devices(asked: Mapping[str, str], network: Network | None) -> Problem:
    from ..api.clusters import cluster_problem

    if is_code(asked["problem"]):
        require_trusted(asked["problem"], "the model")
    if "costs" in asked:
        raise InvalidInputError(
            "--costs chooses between measured tables; costs on a cluster are estimated from its speeds"
        )
    if "groups" not in asked:
        _refuse(asked, ("over_graph",), "groups of devices: give --groups too")
        found = {name: given for name, given in device_options(asked).items() if name != "shapes"}
        return cluster_problem(network or network_named(asked), asked["platform"], **found)
    from ..api.groups import group_problem

    _refuse(asked, ("pipelines",), "plans in which each device has a chunk of its own: leave --groups away")
    return group_problem(
        asked["problem"],
        asked["platform"],
        groups=asked["groups"],
        over_graph="over_graph" in asked,
        **device_options(asked),
    )


def device_options(asked: Mapping[str, str]) -> dict[str, Any]:
    """Return what is asked of any network over devices, as arguments of `group_problem`."""
    from ..formulations.cluster_platform import parse_counts

    return {
        "batch": _count("batch", asked.get("batch")) or 1,
        "shapes": _shapes(asked),
        "devices": parse_counts(asked["devices"]) if "devices" in asked else None,
    }


def network_named(asked: Mapping[str, str]) -> Network:
    """Return the network of the model that is named with a cluster; opening it can take seconds."""
    from ..api.clusters import network_of

    return network_of(asked["problem"], _shapes(asked))


def _shapes(asked: Mapping[str, str]) -> Shapes | None:
    from ..executor.graph.shapes import parse_shapes

    return parse_shapes(asked["shape"].split()) if "shape" in asked else None


def _refuse(asked: Mapping[str, str], names: tuple[str, ...], about: str) -> None:
    stray = [name.replace("mode", "stream").replace("_", "-") for name in names if name in asked]
    if stray:
        raise InvalidInputError(f"--{stray[0]} is about {about}")


def _choice(name: str, kind: Any, asked: Mapping[str, str], default: Any) -> Any:
    text = asked.get(name, default)
    try:
        return kind(text)
    except ValueError:
        raise InvalidInputError(f"{name} is {text!r}, must be {' or '.join(kind)}") from None


def _count(name: str, text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal() or len(text) > 15:
        raise InvalidInputError(f"{name} is {text!r}, must be a whole number")
    return int(text)


def parse_windows(texts: Sequence[str]) -> dict[str, tuple[int, int | None]]:
    """Return the windows of requests, "bert=20..500" in milliseconds; no end after "..": no deadline."""
    found: dict[str, tuple[int, int | None]] = {}
    for text in texts:
        read = _WINDOW.fullmatch(text)
        if read is None or read[1] in found:
            raise InvalidInputError(
                f"--window is {text!r}, must be NAME=FROM..TO in milliseconds, once a request, e.g. "
                "bert=20..500, or bert=20.. for no end"
            )
        begin, end = (round(1000 * float(part)) if part else None for part in read.groups()[1:])
        found[read[1]] = begin or 0, end
    return found


def parse_permille(option: str, text: str) -> int:
    """Return a percentage of the command line in permille."""
    found = _PERCENT.fullmatch(text.strip())
    if found is None:
        raise InvalidInputError(
            f"{option} is {text!r}, must be a percentage with at most one decimal, e.g. 80% or 62.5%"
        )
    return 10 * int(found[1]) + int(found[2] or 0)
