"""Planning: plan, compare, check, simulate."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import documents
from ..exits import ExitCode, code_of_comparison, code_of_result
from ..formulations.errors import InvalidPlanError
from ..formulations.files import dump_plan, load_plan
from ..formulations.judge import check as violations_of
from ..formulations.judge import score as score_of
from ..formulations.problem import Problem
from ..formulations.simulate import simulate as play
from ..options import (
    JsonOption,
    MemoryLimitOption,
    OutOption,
    PlanArgument,
    ProblemArgument,
    SeedOption,
    StrictRulesOption,
    ThreadsOption,
    TimeLimitOption,
    TopOption,
    asking,
    check_writable,
)
from ..problems import load_problem
from ..report import tables
from ..solving import compare_watched, plan_watched
from ..workflow import DEFAULT_BACKENDS
from .answer import Answer, command, write_out


@command
@asking
def plan(
    problem: Problem,
    *,
    backend: Annotated[
        str, typer.Option(help="Who solves; `gapless doctor` lists them.", rich_help_panel="How to solve")
    ] = "native",
    top: TopOption = 1,
    time_limit: TimeLimitOption = None,
    memory_limit: MemoryLimitOption = None,
    strict_rules: StrictRulesOption = False,
    seed: SeedOption = 0,
    threads: ThreadsOption = 1,
    out: OutOption = None,
    json: JsonOption = False,
) -> Answer:
    """Find the best plans of a problem with one backend."""
    check_writable(out)
    result, interrupted = plan_watched(
        problem,
        backend,
        top=top,
        time_limit_s=time_limit,
        memory_limit_bytes=_bytes(memory_limit),
        strict_rules=strict_rules,
        seed=seed,
        threads=threads,
    )
    best = result.plan
    notes = ["interrupted: this is the best until then"] if interrupted else []
    if best is not None:
        notes += write_out(out, lambda: dump_plan(best, problem))
    elif out is not None:
        notes += [f"{out} is not written: there is no plan"]
    return Answer(
        document=lambda: documents.result_document(problem, result),
        view=lambda: tables.result_view(problem, result),
        code=ExitCode.INTERRUPTED if interrupted else code_of_result(result),
        notes=notes,
    )


@command
@asking
def compare(
    problem: Problem,
    *,
    backends: Annotated[
        str | None,
        typer.Option(
            help=f"Comma-separated names; otherwise {','.join(DEFAULT_BACKENDS)}.",
            rich_help_panel="How to solve",
            show_default=False,
        ),
    ] = None,
    top: TopOption = 1,
    time_limit: TimeLimitOption = None,
    memory_limit: MemoryLimitOption = None,
    strict_rules: StrictRulesOption = False,
    seed: SeedOption = 0,
    threads: ThreadsOption = 1,
    out: OutOption = None,
    json: JsonOption = False,
) -> Answer:
    """Solve a problem with several backends and compare what they prove. --out writes the JSON document."""
    check_writable(out)
    named = () if backends is None else tuple(name.strip() for name in backends.split(","))
    comparison, interrupted = compare_watched(
        problem,
        DEFAULT_BACKENDS if backends is None else named,
        top=top,
        time_limit_s=time_limit,
        memory_limit_bytes=_bytes(memory_limit),
        strict_rules=strict_rules,
        seed=seed,
        threads=threads,
    )
    document = documents.comparison_document(comparison, interrupted=interrupted)
    code = code_of_comparison(comparison, required=named)
    notes = ["interrupted: the last backend shows its best until then"] if interrupted else []
    return Answer(
        document=lambda: document,
        view=lambda: tables.comparison_view(comparison),
        code=ExitCode.INTERRUPTED if interrupted else code,
        notes=notes + write_out(out, lambda: documents.json_text(document)),
    )


@command
@asking
def check(problem: Problem, plan: PlanArgument, *, json: JsonOption = False) -> Answer:
    """Check a plan against a problem: its score, or everything that it breaks (exit code 6)."""
    judged = load_plan(plan)
    violations = violations_of(problem, judged)
    try:
        score = score_of(problem, judged)
    except InvalidPlanError:  # not well formed: the violations say why
        score = None
    return Answer(
        document=lambda: documents.check_document(problem, judged, score, violations),
        view=lambda: tables.check_view(problem, judged, score, violations),
        code=ExitCode.VERIFICATION if violations else ExitCode.OK,
    )


@command
def simulate(
    problem: ProblemArgument,
    plan: PlanArgument,
    *,
    requests: Annotated[int, typer.Option(min=1, max=100_000, help="Number of requests.")] = 8,
    interval_us: Annotated[
        int | None, typer.Option(min=0, max=2**40, help="Time between arrivals; otherwise one period.")
    ] = None,
    task_slots: Annotated[
        int | None, typer.Option(min=1, help="Most requests on their way at once; otherwise no limit.")
    ] = None,
    costs: Annotated[str | None, typer.Option(help="heavy or isolated, for a shipped problem.")] = None,
    json: JsonOption = False,
) -> Answer:
    """Play a plan for a number of requests and show who works when."""
    asked = load_problem(problem, costs=costs)
    trace = play(asked, load_plan(plan), requests=requests, interval_us=interval_us, task_slots=task_slots)
    return Answer(
        document=lambda: documents.trace_document(asked, trace),
        view=lambda: tables.simulation_view(trace),
    )


def _bytes(mebibytes: int | None) -> int | None:
    return None if mebibytes is None else mebibytes * 2**20
