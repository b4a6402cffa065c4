"""Files of execution: profiles, deployments, measurements, traces, tuning results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..answers.tuning import candidates
from ..api.execution import DEFAULT_METHOD, profiled_problem
from ..api.layer_orders import with_layer_order
from ..api.slowdown.side_by_side import Together
from ..api.tuned import LOOP, Tuned, executions_of
from ..executor.pipeline.trace_file import trace_parts
from ..executor.tuning.result import TUNING
from ..formulations.cluster_platform import ClusterPlatform
from ..formulations.co_run import LEARNED, possible_models
from ..formulations.files import (
    dump,
    dump_plan,
    dump_problem,
    save,
)
from ..formulations.history import History
from ..formulations.problem import Problem
from ..formulations.reordering import order_words
from ..formulations.simulate import trace_usage
from ..profiler.clusters.measured import cluster_costs
from ..profiler.prediction.executions import EXECUTIONS, Executions
from ..profiler.profile import PROFILE, Profile
from ..view.text import markdown_text, table_csv
from .documents import comparison_document, json_text
from .pareto_file import dump_front
from .plans import DEPLOYMENT
from .run import PROFILE as PROFILES
from .run import SAVE, TUNE, Entry, Run, begin

Found = Tuned | Profile | Together
"""What a run finds."""


def save_run(
    found: Found, out: str | Path, *, resume: bool = False, overwrite: bool = False
) -> tuple[str, ...]:
    """Write what was found into a run folder, as `gapless tune` and `gapless profile` do.

    Parameters
    ----------
    found
        The result of `tune`, `tune_simulated`, `profile` or `profile_together`.
    out
        The folder; it is made if it is not there.
    resume
        Whether the files of a run of the same networks may be replaced.
    overwrite
        Whether the files of any other run are removed first.

    Returns
    -------
    tuple of str
        The files that were written.

    Raises
    ------
    InvalidInputError
        The folder holds a run and neither is asked for, or cannot be written.

    Examples
    --------
    >>> import gapless
    >>> problem = gapless.load_problem("pixel7a/octree")
    >>> tuned = gapless.tuning.tune_simulated(problem, problem, top=2)
    >>> gapless.running.save_run(tuned, "run")  # doctest: +SKIP
    """
    with begin(
        out,
        SAVE,
        [found.network] if isinstance(found, Profile) else found.problem,
        entry=Entry(resume=resume, overwrite=overwrite),
        simulated=is_simulated(found),
        saves=TUNE if isinstance(found, Tuned) else PROFILES,
    ) as run:
        write_found(found, run)
    return tuple(str(run.place / name) for name in run.document.files)


def write_found(found: Found, run: Run) -> list[str]:
    """Write everything that was found as the results of a run; return the note that says so."""
    return run.write(
        _texts(found), interrupted=isinstance(found, Tuned) and found.interrupted, **_about(found)
    )


def is_simulated(found: Found) -> bool:
    """Return whether the device of a result is a simulated one."""
    return isinstance(found, Tuned) and found.result.simulated


def _about(found: Found) -> dict[str, Any]:
    """Return what a result says of itself in run.json."""
    if isinstance(found, Profile):
        platform, table = found.platform, found.tables[0].provenance
    else:
        platform, table = found.problem.platform, found.problem.costs.provenance
    engine, device = table.engine, table.device
    if isinstance(found, Tuned):
        device = found.result.device or device
    if is_simulated(found):
        engine = "simulated"
    return {"engine": engine, "units": platform.unit_names, "device": device}


def _texts(found: Found) -> dict[str, str]:
    """Return the files of a result: their names and contents."""
    if isinstance(found, Profile):
        return _profile_texts(found)
    if isinstance(found, Tuned):
        return _tuned_texts(found)
    texts = {
        f"profile-{number}.json": dump(profile, PROFILE)
        for number, profile in enumerate(found.profiles, start=1)
    }
    return {**texts, "problem.json": dump_problem(found.problem)}


def _profile_texts(taken: Profile, *, asked: Problem | None = None) -> dict[str, str]:
    """Return the profile, and a problem for each co-run cost model that it allows.

    `asked`: the problem with objective, limits and rules that the written ones are to have, too.
    """
    texts = {"profile.json": dump(taken, PROFILE)}
    measured = {table.provenance.method for table in taken.tables}
    for model in possible_models(measured):
        name = "problem.json" if model == DEFAULT_METHOD else f"problem-{model}.json"
        problem = profiled_problem(taken, costs=model)
        if asked is not None and problem.co_run_costs is not None and not asked.formulation.co_run_costs:
            continue
        if asked is not None:
            problem = with_layer_order(problem, order_words(asked.network.order) or "fixed")
            problem = asked.with_costs(problem.costs, problem.co_run_costs)
        texts[name] = dump_problem(problem)
    return texts


def cluster_profile_texts(taken: Profile, platform: ClusterPlatform) -> dict[str, str]:
    """Return the profile of a network on the devices of a cluster, and the problem of planning it there."""
    problem = cluster_costs(taken, platform)
    return {"profile.json": dump(taken, PROFILE), "problem.json": dump_problem(problem)}


def _tuned_texts(tuned: Tuned) -> dict[str, str]:
    """Return everything that tuning found."""
    table = candidates(tuned.result)
    texts = {
        "tuning.json": dump(tuned.result, TUNING),
        "table.md": markdown_text(table),
        "table.csv": table_csv(table),
    }
    if tuned.front is None:
        texts["comparison.json"] = json_text(comparison_document(tuned.comparison))
    else:
        texts["pareto.json"] = dump_front(tuned.front, tuned.problem)
    if tuned.loop is not None:
        texts["rounds.json"] = dump(tuned.loop, LOOP)
    executions = _executions(tuned)
    if executions is not None:
        texts["executions.json"] = dump(executions, EXECUTIONS)
    asked, taken = tuned.problem_without_opaque_rules, tuned.profile
    texts |= {"problem.json": dump_problem(asked)} if taken is None else _profile_texts(taken, asked=asked)
    if taken is not None and asked.costs.provenance.method == LEARNED:
        texts[f"problem-{LEARNED}.json"] = dump_problem(asked)
    if tuned.deployment is not None:
        texts["deployment.json"] = dump(tuned.deployment, DEPLOYMENT)
    best = tuned.plan
    if best is not None:
        texts["plan.json"] = dump_plan(best, tuned.problem)
    return texts


def _executions(tuned: Tuned) -> Executions | None:
    """Return all plans that were executed, and the tables that predicted them; None where there are none."""
    problem, taken = tuned.problem, tuned.profile
    if taken is None and problem.co_run_costs is not None:
        return None
    return executions_of(problem, (problem.costs,) if taken is None else taken.tables, tuned.results)


def save_trace(trace: History, out: Path, *, problem: Problem | None = None) -> int:
    """Write a trace; return the number of its events (chunks of requests).

    `problem`: what a simulated trace is a plan of: then the file has memory over time, too.
    """
    steps: tuple[tuple[int, int], ...] = ()
    if problem is not None and not trace.measured:
        steps = trace_usage(problem, trace).steps
    # Where sizes are not known, a line at zero would say that nothing is needed.
    known = any(used for _, used in steps)
    save("".join(trace_parts(trace, memory_steps=steps if known else ())), out)
    return len(trace.events)
