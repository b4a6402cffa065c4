"""From a question to its problem, and what was chosen where the question says nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..formulations.deployment import Mode
from ..formulations.errors import InvalidInputError
from ..formulations.job_requests import ORDERED, Jobs
from ..formulations.objective import PERIOD, Objective
from ..formulations.passages import Passage
from ..formulations.plugins import require_trusted
from ..formulations.problem import Problem
from ..formulations.reordering import order_words
from ..formulations.workload import Execution, RequestOrder, Workload
from ..profiler.platforms.catalog import is_shipped_name
from ..question.question import About, Question, asked_fields
from .layer_orders import with_layer_order
from .models import is_code
from .problems import (
    load_problem,
    load_workload,
    once_because,
    with_free_passage,
    with_passage,
    with_pipelines,
)
from .side_by_side import Segments, with_side_by_side

if TYPE_CHECKING:
    from ..formulations.network import Network

_FREE_ONE, _FREE_SEVERAL = "any, or else once", "any, or else ordered"
"""The passage where none is given, of one network and of a workload: what is asked, and known, decides
(`with_free_passage`)."""


def with_usual_passage(question: Question) -> Question:
    """Return a question about a new problem: where no passage is given, what is asked and known decides.

    A problem file about a workload is about its requests, whoever wrote it: they, too, pass units in any way
    unless they ask what only one order knows. Files of plans that name no passage are about one chunk per
    unit, those of workloads about `ordered`.
    """
    if question.passage is not None:
        return question
    return replace(question, passage=_FREE_ONE if question.workload is None else _FREE_SEVERAL)


def problem_of(question: Question, network: Network | None = None) -> Problem:
    """Return the problem that is asked for, with its objective and limits.

    `network`: the model that is named with a cluster, where it was opened before; None: it is opened.
    Raises InvalidInputError: the question names nothing, or something that is not there; an objective or a
    limit is not valid, or something has no meaning for such a problem.
    """
    problem = _named(question, network)
    if question.layer_order == "free":
        for name in ("pipelines", "groups"):
            if question.value(name) is not None:
                raise InvalidInputError(f"--{name} is about chunks of one order: leave --layer-order away")
        problem = _in_any_order(problem, question)
    else:
        _refuse(question, About.SIDE_BY_SIDE)
        problem = with_layer_order(problem, question.layer_order or "fixed")
    if question.pipelines is not None:
        problem = with_pipelines(problem, question.pipelines)
    if question.passage is not None and not _is_free(question):
        problem = with_passage(problem, question.passage)
    if question.objective is not None:
        problem = problem.with_objective(question.objective)
    limits = question.limits.in_use()
    problem = problem.with_limits(**limits) if limits else problem
    if question.passage == _FREE_ONE and not isinstance(problem.data, Workload | None):
        return problem  # of schedules, or of another shape: it says itself how units are passed
    return with_free_passage(problem) if _is_free(question) else problem


def settled(question: Question, problem: Problem) -> tuple[Question, tuple[str, ...]]:
    """Return what was asked with what was chosen for it, the passage and the order of the layers; and notes.

    A plan is about these, whatever would be chosen another time.
    """
    notes: tuple[str, ...] = ()
    if _is_free(question):
        if isinstance(problem.data, Workload | Jobs):
            passage: str | None = problem.data.passage if isinstance(problem.data, Jobs) else ORDERED
        else:
            passage = str(problem.data.ways) if isinstance(problem.data, Passage) else None
            notes = _passage_notes(question, problem)
        question = replace(question, passage=passage)
    if question.layer_order != "best":
        return question, notes
    network = problem.network
    question = replace(question, layer_order=order_words(network.order) or "fixed")
    return question, (*notes, order_note(network))


def once_note(why: str) -> str:
    """Return that units have one chunk each, although it is known what a hop costs."""
    return f"what a hop costs is known, but units have one chunk each (--passage once): {why}"


def order_note(network: Network) -> str:
    """Return which order of the layers was found to be the best, in words."""
    if not network.order:
        return "no better order of the layers was found than theirs"
    return f"the layers are in the order {order_words(network.order)}: chunks count in it"


def device_options(question: Question) -> dict[str, Any]:
    """Return what is asked of any network over devices, as arguments of `group_problem`."""
    return {"batch": question.batch or 1, "shapes": question.shape, "devices": question.devices}


def network_named(question: Question) -> Network:
    """Return the network of the model that is named with a cluster; opening it can take seconds."""
    from .clusters import network_of

    assert question.problem is not None
    return network_of(question.problem, question.shape)


def _is_free(question: Question) -> bool:
    return question.passage in (_FREE_ONE, _FREE_SEVERAL)


def _in_any_order(problem: Problem, question: Question) -> Problem:
    """Return what any order of the layers is free for: the latency of one request, or else the period."""
    if Objective.parse(question.objective or PERIOD).first == "latency":
        return with_side_by_side(problem, segments=question.segments or Segments.LAYERS)
    if question.segments is not None:
        raise InvalidInputError("--segments is about layers side by side: give --objective latency, too")
    return with_layer_order(problem, "free")


def _passage_notes(question: Question, problem: Problem) -> tuple[str, ...]:
    """Return what to say about the passage of one network that was chosen because none was given."""
    if not problem.costs.knows_hops:
        return ()
    if isinstance(problem.data, Passage):
        return ("units may have several chunks, as what a hop costs is known; --passage once allows one",)
    shaped = [
        f"--{name.replace('_', '-')}"
        for name in ("pipelines", "layer_order")
        if question.value(name) is not None
    ]
    why = once_because(problem) or (f"{shaped[0]} has no other plans" if shaped else "")
    return (once_note(why),) if why else ()


def _named(question: Question, network: Network | None) -> Problem:
    if question.workload is not None:
        _refuse(question, About.DEVICES, About.GROUPS, why="one network over devices: leave --workload away")
        return load_workload(
            question.workload,
            problem=question.problem,
            platform=question.platform,
            costs=question.costs,
            order=question.order or RequestOrder.FREE,
            execution=question.execution or Execution.ASYNCHRONOUS,
            mode=question.mode or Mode.BATCH,
            task_slots=question.task_slots,
            contention=question.contention,
            windows=question.window,
            passage=ORDERED,
        )
    _refuse(question, About.WORKLOADS)
    shipped = f"{question.platform}/{question.problem}"
    if question.platform is not None and is_shipped_name(shipped):
        question = replace(question, platform=None, problem=shipped)
    if question.problem is None:
        raise InvalidInputError(
            "no problem is named: give a problem file or a shipped name (`gapless platforms` lists them), "
            "a model with --platform and a cluster, or --workload with --platform"
        )
    if question.platform is not None:
        return _over_devices(question, question.problem, question.platform, network)
    _refuse(question, About.DEVICES, About.GROUPS, why=About.DEVICES)
    return load_problem(question.problem, costs=question.costs)


def _over_devices(question: Question, model: str, platform: str, network: Network | None) -> Problem:
    if is_code(model):
        require_trusted(model, "the model")
    if question.costs is not None:
        raise InvalidInputError(
            "--costs chooses between measured tables; costs on a cluster are estimated from its speeds"
        )
    if question.groups is None:
        from .clusters import cluster_problem

        _refuse(question, About.GROUPS)
        found = {name: given for name, given in device_options(question).items() if name != "shapes"}
        return cluster_problem(network or network_named(question), platform, **found)
    from .groups import group_problem

    if question.pipelines is not None:
        raise InvalidInputError(
            "--pipelines is about plans in which each device has a chunk of its own: leave --groups away"
        )
    return group_problem(
        model,
        platform,
        groups=question.groups,
        over_graph=bool(question.over_graph),
        **device_options(question),
    )


def _refuse(question: Question, *about: About, why: str = "") -> None:
    """Refuse what has no meaning for the problem; `why`: what it is about; empty: as the fields say."""
    for each in asked_fields():
        if each.about in about and question.value(each.name) is not None:
            raise InvalidInputError(f"{each.option} is about {why or each.about}")
