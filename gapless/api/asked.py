"""From a question to its problem, and what was chosen where the question says nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from ..formulations.deployment import Mode
from ..formulations.errors import GaplessError, InvalidInputError
from ..formulations.limits import Limits
from ..formulations.network import Network
from ..formulations.passages import Passage, Ways
from ..formulations.plugins import require_trusted, trust
from ..formulations.problem import Problem
from ..formulations.reordering import order_words
from ..formulations.schedules import ORDERED, Jobs
from ..formulations.terms import PERIOD, Objective
from ..formulations.validation import meant
from ..formulations.workload import Execution, RequestOrder, Workload
from ..profiler.platforms.catalog import is_shipped_name
from ..question.question import About, Question, asked_fields
from ..solvers.registry import get_backends
from .graphs import Segments, with_side_by_side
from .models import is_code
from .problems import (
    load_problem,
    load_workload,
    once_because,
    with_free_passage,
    with_passage,
    with_pipelines,
    with_states,
)

if TYPE_CHECKING:
    from ..executor.model import Model
    from ..formulations.cluster_platform import ClusterPlatform
    from ..formulations.rules import AnyRule, RuleFunction
    from ..solvers.protocol import Backend
    from .clusters import Planned

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a question is about, where Python has it already and no name is needed."""

    problem: Problem | None = None
    model: Model | Network | None = None  # to be planned over a cluster
    cluster: ClusterPlatform | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A problem as it was asked for."""

    problem: Problem  # the problem, with objective, limits and rules
    question: Question  # how it was named, and what was chosen; a plan file keeps that
    notes: tuple[str, ...] = ()  # what the user should know about it
    once: Callable[[], Asked] | None = None
    """Asks for one chunk per unit, where units may have several only because nothing else was said."""

    @property
    def task_slots(self) -> int | None:
        """Task slots that were asked for without a workload: they are for who plays the plan."""
        return self.question.task_slots if self.problem.formulation.one_network else None


class Words(TypedDict, total=False):
    """What can be asked of a problem besides its name, as for `plan`; the fields of a question, and rules."""

    platform: ClusterPlatform | str | Path | None
    workload: str | None
    devices: Mapping[str, int] | None
    batch: int | None
    shape: Mapping[str, Sequence[int]] | None
    order: str | None
    execution: str | None
    mode: str | None
    task_slots: int | None
    contention: str | Path | None
    costs: str | None
    state: Mapping[str, str] | None
    pipelines: str | int | None
    passage: str | None
    groups: str | int | None
    over_graph: bool | None
    layer_order: str | None
    segments: str | None
    objective: str | Objective | None
    limits: Limits | None
    window: Mapping[str, tuple[int, int | None]] | None
    rules: Iterable[RuleFunction | AnyRule]


def asked_problem(problem: Planned | Question | None, words: Words) -> Asked:
    """Return the problem that Python asks for.

    A name is asked about as on the command line: where no passage is given, what is known decides. A problem
    says itself how units are passed.
    Raises InvalidInputError: as for `problem_of`; a rule or a value is not valid.
    """
    cluster = words.get("platform")
    subject = Subject(
        problem=problem if isinstance(problem, Problem) else None,
        model=None if isinstance(problem, Problem | Question | str | Path | None) else problem,
        cluster=None if isinstance(cluster, str | Path | None) else cluster,
    )
    said: dict[str, Any] = {
        name: value for name, value in words.items() if name != "rules" and value is not None
    }
    if subject.cluster is not None:
        said["platform"] = subject.cluster.name
    known = [each.name for each in fields(Question)]
    if stray := [name for name in words if name not in {*known, "rules"}]:
        raise InvalidInputError(f"{stray[0]} cannot be asked; {meant(stray[0], known)}")
    question = problem if isinstance(problem, Question) else Question()
    if isinstance(problem, str | Path):
        said["problem"] = str(problem)
        trust(str(problem))  # who names code in a program has it run; a question may come from a file
    question = Question(**said).over(question)
    given = words.get("rules") or ()
    if isinstance(given, str) or not isinstance(given, Iterable):
        example = "rules=[gapless.rules.pin(0, unit='cpu')]"
        raise InvalidInputError(f"rules is {given!r}, must be a list of rules, e.g. {example}")
    rules = tuple(given)
    asked = (
        Asked(problem=problem_of(question, subject).with_rules(*rules), question=question)
        if subject.problem is not None and question.workload is None
        else ask(question, subject, lambda made: made.with_rules(*rules))
    )
    if asked.task_slots is not None:
        raise InvalidInputError("task_slots are of a workload; `simulate` takes them for one network")
    return asked


def ask(
    question: Question,
    subject: Subject = Subject(),
    change: Callable[[Problem], Problem] = lambda problem: problem,
) -> Asked:
    """Return a new problem that is asked for; where no passage is given, what is asked and known decides.

    `change`: adds what a question cannot say: rules. Errors as for `problem_of`.
    """
    usual = with_usual_passage(question)
    problem = problem_of(usual, subject)
    free = False
    if question.passage is None and isinstance(problem.data, Passage):
        free = problem_of(question, subject).data is None  # or the file says so itself
        usual = usual if free else question
    chosen, notes = settled(usual, problem)
    once = partial(ask, replace(question, passage=Ways.ONCE), subject, change) if free else None
    try:
        return Asked(problem=change(problem), question=chosen, notes=notes, once=once)
    except GaplessError as error:
        if once is None:
            raise
        return in_once(once, str(error))


def in_once(once: Callable[[], Asked], why: str) -> Asked:
    """Return what is asked with one chunk per unit, and say why."""
    found = once()
    return replace(found, notes=(*found.notes, once_note(why)))


def for_backends(asked: Asked, backends: Sequence[str | Backend]) -> Asked:
    """Return what is asked with one chunk per unit, where that is all that some named backend knows."""
    if asked.once is None or not backends:
        return asked
    abilities = {one.name: one.capabilities for one in get_backends(backends)}
    lacking = [name for name, able in abilities.items() if able.support(asked.problem) is None]
    once = asked.once().problem if lacking else asked.problem
    lacking = [name for name in lacking if not abilities[name].missing(once)]
    return in_once(asked.once, f"{', '.join(lacking)} can plan no others") if lacking else asked


def problem_of(question: Question, subject: Subject = Subject()) -> Problem:
    """Return the problem that is asked for, with its objective and limits.

    `subject`: what the question is about, as far as it needs no name.
    Raises InvalidInputError: the question names nothing, or something that is not there; an objective or a
    limit is not valid, or something has no meaning for such a problem.
    """
    from .layer_orders import with_layer_order  # which plans, and `plan` asks this module

    problem = _named(question, subject)
    if question.state is not None:
        problem = with_states(problem, question.state)
    if question.layer_order == "free":
        for option in question.options("pipelines", "groups"):
            raise InvalidInputError(f"{option} is about chunks of one order: omit --layer-order")
        problem = _in_any_order(problem, question)
    else:
        _refuse(question, About.SIDE_BY_SIDE)
        problem = with_layer_order(problem, question.layer_order or "fixed")
    if question.task_slots is not None and question.workload is None and not problem.formulation.one_network:
        raise InvalidInputError("--task-slots is about a workload that is named; this problem says its own")
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
    from .layer_orders import with_layer_order

    return with_layer_order(problem, "free")


def _passage_notes(question: Question, problem: Problem) -> tuple[str, ...]:
    """Return what to say about the passage of one network that was chosen because none was given."""
    if not problem.costs.knows_hops:
        return ()
    if isinstance(problem.data, Passage):
        return ("units may have several chunks, as what a hop costs is known; --passage once allows one",)
    shaped = question.options("pipelines", "layer_order")
    why = once_because(problem) or (f"{shaped[0]} has no other plans" if shaped else "")
    return (once_note(why),) if why else ()


def _named(question: Question, subject: Subject) -> Problem:
    if subject.problem is not None and question.costs is not None:
        raise InvalidInputError(
            f"costs={question.costs!r} chooses between the tables of a shipped problem; this one is made"
        )
    if question.workload is not None:
        _refuse(question, About.DEVICES, About.GROUPS, why="one network over devices: omit --workload")
        if subject.model is not None or subject.cluster is not None:
            raise InvalidInputError("a workload names its networks, and runs on one device: omit the other")
        return load_workload(
            question.workload,
            problem=subject.problem or question.problem,
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
    if question.problem is None and subject.problem is None and subject.model is None:
        raise InvalidInputError(
            "no problem is named: give a problem file or a shipped name (`gapless list problems`), "
            "a model with --platform and a cluster, or --workload with --platform"
        )
    if question.platform is not None or subject.cluster is not None:
        return _over_devices(question, subject)
    _refuse(question, About.DEVICES, About.GROUPS, why=About.DEVICES)
    if subject.model is not None:
        raise InvalidInputError(
            "a model is given, and no problem: name the cluster that it is planned over (platform=...), or "
            "measure it with gapless.profile"
        )
    if subject.problem is None:
        return load_problem(question.problem or "", costs=question.costs)
    return subject.problem


def _over_devices(question: Question, subject: Subject) -> Problem:
    name, platform = question.problem or "", subject.cluster or question.platform or ""
    if is_code(name):
        require_trusted(name, "the model")
    if question.costs is not None:
        raise InvalidInputError(
            "--costs chooses between measured tables; costs on a cluster are estimated from its speeds"
        )
    if question.groups is None:
        from .clusters import cluster_problem

        _refuse(question, About.GROUPS)
        found, made = device_options(question), subject.model or subject.problem
        if made is None:
            made = network_named(question)
            del found["shapes"]  # it is opened with them
        return cluster_problem(made, platform, **found)
    from .groups import group_problem

    if question.pipelines is not None:
        raise InvalidInputError(
            "--pipelines is about plans in which each device has a chunk of its own: omit --groups"
        )
    if subject.problem is not None or isinstance(subject.model, Network):
        raise InvalidInputError("groups are of a model whose pieces are cut: name it, or open it")
    return group_problem(
        subject.model or name,
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
