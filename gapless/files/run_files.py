"""Files of execution: profiles, deployments, measurements, traces, tuning results."""

from __future__ import annotations

from pathlib import Path

from ..api.closed_loop import executed_plans
from ..api.execution import DEFAULT_METHOD, profiled_problem
from ..api.problems import load_problem
from ..api.rounds import LOOP
from ..api.slowdown.side_by_side import Together
from ..api.tuning import Tuned
from ..executor.measurement import Measurement
from ..executor.pipeline.trace_export import trace_parts
from ..executor.tuning.documents import MEASUREMENT, TUNING
from ..executor.tuning.tables import csv_text, markdown_text, rows_table
from ..formulations.co_run import possible_models
from ..formulations.deployment import Deployment
from ..formulations.errors import InvalidPlanError
from ..formulations.files import (
    Schema,
    dump,
    dump_plan,
    dump_problem,
    format_of,
    load,
    load_origin,
    load_plan,
    save,
)
from ..formulations.history import History
from ..formulations.judge import check
from ..formulations.operation import operation_of
from ..formulations.plan import Plan
from ..formulations.problem import Problem
from ..formulations.simulate import trace_usage
from ..profiler.prediction.executions import EXECUTIONS, Executions
from ..profiler.profile import PROFILE, Profile
from .documents import comparison_document, json_text
from .origins import on_problem, problem_of

DEPLOYMENT = Schema(format="gapless.deployment", version=1, content=Deployment)


def problem_for(problem: str, plan: str | Path) -> Problem:
    """Read the problem of a plan or deployment file: with the workload that the plan was made for, if any.

    Raises
    ------
    InvalidInputError
        A file is not valid.
    """
    if _is_deployment(Path(plan)):
        return load_problem(problem)
    origin = load_origin(plan)
    if "workload" not in origin.asked:
        return load_problem(problem)
    return problem_of(on_problem(origin, problem))


def load_deployment(path: str | Path, problem: Problem) -> Deployment:
    """Read a plan file, or a deployment file (replicas), for a problem.

    Raises
    ------
    InvalidInputError
        The file is not valid.
    InvalidPlanError
        What it holds breaks the problem; everything is named.
    """
    if not _is_deployment(Path(path)):
        plan = load_plan(path)
        require_valid(problem, plan, path)
        return operation_of(problem).deploy(problem, plan)
    deployment = load(path, DEPLOYMENT)
    for plan in deployment.plans:
        require_valid(problem, plan, path)
    return deployment


def require_valid(problem: Problem, plan: Plan, path: str | Path) -> None:
    """Refuse the plan of a file that breaks its problem.

    Raises
    ------
    InvalidPlanError
        It does; everything is named.
    """
    violations = check(problem, plan)
    if violations:
        raise InvalidPlanError(
            f"{path} cannot be run on this problem:", [violation.message for violation in violations]
        )


def write_profile(taken: Profile, place: Path, *, asked: Problem | None = None) -> list[str]:
    """Write the profile, and a problem for each co-run cost model that it allows; return what was written.

    Parameters
    ----------
    taken, place
        What was measured, and the folder.
    asked
        The problem with objective, limits and rules that the written ones are to have, too.
    """
    texts = {place / "profile.json": dump(taken, PROFILE)}
    measured = {table.provenance.method for table in taken.tables}
    for model in possible_models(measured):
        name = "problem.json" if model == DEFAULT_METHOD else f"problem-{model}.json"
        problem = profiled_problem(taken, costs=model)
        if asked is not None:
            problem = asked.with_costs(problem.costs, problem.co_run_costs)
        texts[place / name] = dump_problem(problem)
    return _written(texts)


def write_together(found: Together, place: Path) -> list[str]:
    """Write the profile of each of several networks, and the problem of running them at once."""
    texts = {
        place / f"profile-{number}.json": dump(profile, PROFILE)
        for number, profile in enumerate(found.profiles, start=1)
    }
    return _written({**texts, place / "problem.json": dump_problem(found.problem)})


def write_tuned(tuned: Tuned, place: Path) -> list[str]:
    """Write everything that tuning found; return what was written."""
    table = rows_table(tuned.result)
    texts = {
        place / "tuning.json": dump(tuned.result, TUNING),
        place / "table.md": markdown_text(table),
        place / "table.csv": csv_text(table),
        place / "comparison.json": json_text(comparison_document(tuned.comparison)),
    }
    if tuned.loop is not None:
        texts[place / "rounds.json"] = dump(tuned.loop, LOOP)
    executions = _executions(tuned)
    if executions is not None:
        texts[place / "executions.json"] = dump(executions, EXECUTIONS)
    asked, taken, notes = tuned.problem_without_opaque_rules, tuned.profile, []
    if taken is None:
        texts[place / "problem.json"] = dump_problem(asked)
    else:
        notes = write_profile(taken, place, asked=asked)
    if tuned.deployment is not None:
        texts[place / "deployment.json"] = dump(tuned.deployment, DEPLOYMENT)
    best = tuned.plan
    if best is not None:
        texts[place / "plan.json"] = dump_plan(best, tuned.problem)
    notes += _written(texts)
    return notes


def _executions(tuned: Tuned) -> Executions | None:
    """Return all plans that were executed beside the tables that foretold them; None where there are none.

    Replicas are not one plan, plans for a workload have no period, and of a problem that was given with
    combined or unnamed tables the measured ones are not known.
    """
    problem, taken = tuned.problem, tuned.profile
    tables = (problem.costs,) if taken is None else taken.tables
    if not problem.formulation.one_network or (taken is None and problem.co_run_costs is not None):
        return None
    found = executed_plans(
        [tuned.result] if tuned.loop is None else [one.result for one in tuned.loop.rounds]
    )
    if not found or not possible_models([table.provenance.method for table in tables]):
        return None
    return Executions(
        platform=problem.platform,
        network=problem.network,
        tables=tables,
        executed=found,
        source=f"gapless tune on {tuned.result.device}",
    )


def write_measurement(found: Measurement, out: Path | None) -> list[str]:
    """Write a measurement where `--out` says."""
    return [] if out is None else _written({out: dump(found, MEASUREMENT)})


def save_trace(trace: History, out: Path, *, problem: Problem | None = None) -> int:
    """Write a trace; return the number of its events (chunks of requests).

    Parameters
    ----------
    trace, out
        What, and where.
    problem
        What a simulated trace is a plan of: then the file has memory over time, too.
    """
    steps: tuple[tuple[int, int], ...] = ()
    if problem is not None and not trace.measured:
        steps = trace_usage(problem, trace).steps
    # Where sizes are not known, a line at zero would say that nothing is needed.
    known = any(used for _, used in steps)
    save("".join(trace_parts(trace, memory_steps=steps if known else ())), out)
    return len(trace.events)


def _is_deployment(path: Path) -> bool:
    return format_of(path) == DEPLOYMENT.format


def _written(texts: dict[Path, str]) -> list[str]:
    for path, content in texts.items():
        save(content, path)
    return [f"wrote {', '.join(map(str, texts))}"]
