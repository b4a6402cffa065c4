"""Results as machine-readable documents: what `--json` prints.

Every document says its `format` and `version`. Times are integer microseconds, sizes integer bytes;
what is not known is null.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from ..formulations.errors import InvalidInputError
from ..formulations.limits import LIMIT_NAMES
from ..formulations.registry import data_keys
from ..version import __version__

if TYPE_CHECKING:  # what a command does not print it does not load: `gapless tools version`, shell completion
    from ..api.batches import BatchChoice
    from ..api.comparison import Comparison
    from ..api.streams import TaskStream
    from ..api.tuned import Loop
    from ..executor.cluster.stream import RunStream
    from ..executor.tuning.result import TuningResult
    from ..formulations.history import History
    from ..formulations.plan import Plan
    from ..formulations.problem import Problem
    from ..formulations.scores import Score, Violation
    from ..formulations.task_stream import PlayedStream
    from ..solvers.pareto import ParetoFront
    from ..solvers.result import Candidate, Conflict, SolveResult

Document = dict[str, Any]


def header(kind: str) -> Document:
    """Return the first keys of every document."""
    return {"format": f"gapless.{kind}", "version": 1, "gapless": __version__}


def problem_data(problem: Problem) -> Document:
    """Return what names a problem, and what is asked of it."""
    limits = {name: getattr(problem.limits, name) for name in LIMIT_NAMES}
    return {
        "platform": problem.platform.name,
        "networks": [network.name for network in problem.networks],
        "fingerprint": problem.fingerprint,
        "units": list(problem.platform.unit_names),
        "layers": sum(len(network.layers) for network in problem.networks),
        "objective": str(problem.objective),
        "limits": {name: value for name, value in limits.items() if value is not None},
        "rules": [{"name": rule.name, "text": rule.text} for rule in problem.rules],
        "features": sorted(problem.features),
        **dict.fromkeys(data_keys()),
        **({} if problem.data is None else {problem.data.data_key: plain_data(problem.data)}),
    }


def score_data(problem: Problem, score: Score, *, whole: bool = True) -> Document:
    """Return a score; numbers that come as lists are by name of the unit, or of what they are about.

    `whole`: with the terms that take long (`Score.later`); otherwise they are None.
    """
    labels = problem.formulation.labels
    return {
        **score.terms,
        **{name: compute() if whole else None for name, compute in score.later.items()},
        "throughput_per_s": score.throughput,
        **{
            name: dict(zip(labels(problem, name), column, strict=True))
            for name, column in score.columns.items()
        },
        "violations": violations_data(score.violations),
    }


def violations_data(violations: Sequence[Violation]) -> list[Document]:
    """Return what a plan breaks."""
    return [{"rule": violation.rule, "message": violation.message} for violation in violations]


def plan_data(problem: Problem, plan: Plan) -> Document:
    """Return a plan as the content of a plan file."""
    from ..formulations.files import dump_plan

    document: Document = json.loads(dump_plan(plan, problem))
    return document


def candidate_data(problem: Problem, candidate: Candidate, *, whole: bool = True) -> Document:
    """Return a plan with its score; `whole` as for `score_data`."""
    return {
        "plan_id": candidate.plan.plan_id,
        "plan": plan_data(problem, candidate.plan),
        "score": score_data(problem, candidate.score, whole=whole),
    }


def result_data(problem: Problem, result: SolveResult) -> Document:
    """Return the answer of one backend."""
    from ..solvers.result import figures

    terms = result.asked.terms
    return {
        **{name: _rounded(value) for name, value in figures(result).items() if name != "course"},
        "backend_version": result.version or None,
        "searches": result.searches,
        "terms": [str(term) for term in terms],
        "objective": result.objective,
        "values": None if result.values is None else list(result.values),
        "gap": result.gap,
        "proven": result.proven,
        "distance": result.distance,
        "exhausted": result.exhausted,
        "handling": {name: str(how) for name, how in result.handling.items()},
        "statistics": {name: _finite(value) for name, value in result.statistics.items()},
        "candidates": [
            candidate_data(problem, candidate, whole=place == 0)
            for place, candidate in enumerate(result.candidates)
        ],
        "conflict": None if result.conflict is None else _conflict_data(result.conflict),
        "unfiltered": None if result.unfiltered is None else candidate_data(problem, result.unfiltered),
    }


def _rounded(figure: object) -> object:
    """Return seconds to the microsecond, and any other figure as it is."""
    return round(figure, 6) if isinstance(figure, float) else figure


def stream_document(stream: TaskStream, ran: RunStream | None = None) -> Document:
    """Return a task stream at work, and what happened when it ran on a cluster."""
    return {
        **header("stream"),
        "platform": stream.tasks[0].problem.platform.name,
        "tasks": [
            {
                "network": task.problem.network.name,
                "items": task.items,
                "plan": plan_data(task.problem, task.plan),
                "status": str(result.status),
                "plan_class": result.plan_class,
            }
            for task, result in zip(stream.tasks, stream.results, strict=True)
        ],
        "ahead": _played_data(stream.ahead),
        "waiting": None if stream.waiting is None else _played_data(stream.waiting),
        "planning": None if stream.planning is None else plain_data(stream.planning),
        "ran": None if ran is None else _ran_data(ran),
    }


def _ran_data(ran: RunStream) -> Document:
    tasks = [{**plain_data(task), "numbers": task.numbers} for task in ran.tasks]
    return {"tasks": tasks, "switches": plain_data(ran.switches)}


def _played_data(played: PlayedStream) -> Document:
    switches = {device: list(gaps) for device, gaps in played.switch_us.items()}
    return {**plain_data(played), "makespan_us": played.makespan_us, "switch_us": switches}


def _finite(value: float | str) -> float | str | None:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _conflict_data(conflict: Conflict) -> Document:
    return {
        "items": [{"name": item.name, "text": item.text} for item in conflict.items],
        "smallest": conflict.smallest,
        "irreducible": conflict.irreducible,
        "confirmed_by": conflict.confirmed_by,
    }


def result_document(problem: Problem, result: SolveResult) -> Document:
    """Return the document of `gapless plan`."""
    return {**header("result"), "problem": problem_data(problem), **result_data(problem, result)}


def batches_data(found: Sequence[BatchChoice]) -> list[Document]:
    """Return what each choice of the sizes of batches comes to, the best first."""
    return [
        {
            "workload": choice.workload,
            "status": str(choice.result.status),
            "plan_class": choice.result.plan_class,
            "values": None if choice.result.values is None else list(choice.result.values),
        }
        for choice in found
    ]


def comparison_document(
    comparison: Comparison, asked: Mapping[str, str] | None = None, *, interrupted: bool = False
) -> Document:
    """Return the document of `gapless compare`.

    `asked`: how the problem was named (`formulations.files.dump_plan`); None: not kept. `interrupted`:
    whether the user stopped it before all backends had answered.
    """
    from ..formulations.files import origin_fields

    problem, best = comparison.problem, comparison.best
    return {
        **header("comparison"),
        **plain_data(origin_fields(problem, asked)),
        "problem": problem_data(problem),
        "best": None if best is None else best.backend,
        "bound": comparison.bound,
        "time_limit_s": comparison.time_limit_s,
        "horizon_s": comparison.horizon_s,
        "results": [
            {
                **result_data(problem, result),
                "gap_to_best_bound": comparison.gap_to_best_bound(result),
                "above_best": comparison.above_best(result),
                **plain_data(comparison.pace(result)),
                "course": [plain_data(milestone) for milestone in result.course],
            }
            for result in comparison.results
        ],
        "failures": [
            {
                "backend": failure.backend,
                "start": failure.start,
                "error": type(failure.error).__name__,
                "message": str(failure.error),
            }
            for failure in comparison.failures
        ],
        "disagreements": list(comparison.disagreements),
        "interrupted": interrupted,
    }


def of_file(text: str) -> Document:
    """Return what stands in a JSON file that gapless writes as a document: with its own version, too."""
    document: Document = json.loads(text)
    return {**document, "gapless": __version__}


def check_document(
    problem: Problem, plan: Plan, score: Score | None, violations: Sequence[Violation]
) -> Document:
    """Return the document of `gapless tools check`; the score is None for a plan that is not well formed."""
    return {
        **header("check"),
        "problem": problem_data(problem),
        "plan_id": plan.plan_id,
        "plan_class": problem.plan_class,
        "valid": not violations,
        "violations": violations_data(violations),
        "score": None if score is None else score_data(problem, score),
    }


def trace_document(problem: Problem, trace: History) -> Document:
    """Return the document of `gapless simulate`."""
    assert trace.plan is not None
    apart = len(trace.streams) > 1 and not trace.in_rounds
    return {
        **header("trace"),
        "problem": problem_data(problem),
        "plan_id": trace.plan.plan_id,
        "requests": list(trace.names) or len(trace.arrivals_us),
        "makespan_us": trace.makespan_us,
        "period_us": trace.period_us,
        "arrivals_us": list(trace.arrivals_us),
        "latency_us": list(trace.latency_us),
        "bubble_us": {unit: trace.bubble_us(unit) for unit in trace.units},
        "events": [
            {
                **({"stream": trace.streams[event.stream].name} if apart else {}),
                "request": event.stream if trace.in_rounds else event.request,
                "chunk": event.chunk,
                "unit": event.unit,
                "start_us": event.start_ns // 1000,
                "end_us": event.end_ns // 1000,
                "slowdown_us": event.slowdown_ns // 1000,
            }
            for event in trace.events
        ],
    }


def tuning_document(
    problem: Problem,
    result: TuningResult,
    loop: Loop | None = None,
    front: ParetoFront | None = None,
) -> Document:
    """Return the document of `gapless tune`.

    `loop`, `front`: all rounds, where more than one was asked for; the trade-offs, where those were.
    """
    more = {} if loop is None else {"loop": plain_data(loop)}
    if front is not None:
        from .pareto_file import dump_front

        more["pareto"] = json.loads(dump_front(front, problem))
    return {**header("tuning"), "problem": problem_data(problem), **plain_data(result), **more}


def error_document(error: BaseException, exit_code: int, text: str) -> Document:
    """Return the document that stands in for a result when a command fails."""
    message, problems = text, []
    if isinstance(error, InvalidInputError):
        message, problems = error.message, list(error.problems)
    return {
        **header("error"),
        "error": type(error).__name__,
        "message": message,
        "problems": problems,
        "exit_code": int(exit_code),
    }


def plain_data(value: Any) -> Any:
    """Return a frozen dataclass, with all that is in it, as plain JSON; infinite numbers are null."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain_data(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain_data(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_data(item) for item in value]
    return _finite(value) if isinstance(value, float) else value


def json_text(document: Mapping[str, Any]) -> str:
    """Return a document as text: plain ASCII, so that it survives any terminal or pipe."""
    return json.dumps(document, indent=1, allow_nan=False) + "\n"
