"""The command line: every command computes an answer, and `main` prints it as text or as JSON."""

from __future__ import annotations

import json as json_module
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from . import __version__, documents
from .diagnosis import diagnose
from .exits import ExitCode, code_of_comparison, code_of_error, code_of_result
from .formulations.errors import GaplessError, InvalidPlanError
from .formulations.files import dump_plan, dump_problem, load_plan, save
from .formulations.judge import check as violations_of
from .formulations.judge import score as score_of
from .formulations.problem import Problem
from .formulations.simulate import simulate as play
from .options import (
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
from .problems import load_problem
from .profiler.platforms.catalog import methods_of, shipped_names
from .report import describe, tables
from .report.terminal import clean, console, discard_output, stdout_kept_clean
from .solvers.native.exhaustive import count_plans
from .solving import compare_watched, plan_watched
from .workflow import DEFAULT_BACKENDS

_UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""Root of all usage errors; it lives in another module in each generation of typer."""

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Plan pipelines of neural networks over the unequal processors of one device.",
    epilog="Exit codes: 0 ok, 2 bad input or usage, 3 proved infeasible, 4 no answer within the limit, "
    "5 backend or device failure, 6 verification failure, 130 interrupted.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a command found out.

    Attributes
    ----------
    document
        For machines.
    view
        For people.
    code
        For the caller.
    notes
        What people should know besides; printed to standard error.
    """

    document: Callable[[], dict[str, Any]]
    view: Callable[[], RenderableType]
    code: ExitCode = ExitCode.OK
    notes: Sequence[str] = ()


def command(function: Callable[..., Answer]) -> Callable[..., Answer]:
    """Register a command; whatever is printed while it works goes to standard error."""

    @app.command()
    @wraps(function)
    def registered(**given: Any) -> Answer:
        with stdout_kept_clean():
            return function(**given)

    return registered


@app.callback(invoke_without_command=True)
def top_level(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error (also after the command).")
    ] = False,
) -> None:
    """Handle what is said before the command; `main` looks for --debug itself, wherever it stands."""
    if version:
        typer.echo(f"gapless {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit


@command
def version(*, json: JsonOption = False) -> Answer:
    """Print the version."""
    return Answer(
        document=lambda: documents.header("version"),
        view=lambda: Text(f"gapless {__version__}"),
    )


@command
def doctor(*, json: JsonOption = False) -> Answer:
    """Say what works here: Python, the machine, and every backend with what it can do."""
    diagnosis = diagnose()
    return Answer(
        document=lambda: {**documents.header("diagnosis"), **documents.diagnosis_data(diagnosis)},
        view=lambda: describe.doctor_view(diagnosis),
    )


@command
def platforms(*, json: JsonOption = False) -> Answer:
    """List the shipped problems: measured platforms and networks."""
    return Answer(
        document=lambda: {
            **documents.header("platforms"),
            "problems": [{"name": name, "costs": list(methods_of(name))} for name in shipped_names()],
        },
        view=describe.platforms_view,
    )


@command
@asking
def show(problem: Problem, *, out: OutOption = None, json: JsonOption = False) -> Answer:
    """Show a problem: units, layers, times, objective, limits, rules. --out writes it as a file to edit."""
    notes = _write(out, lambda: dump_problem(problem))
    plans = count_plans(problem.chain)
    return Answer(
        document=lambda: {
            **documents.header("description"),
            "problem": documents.problem_data(problem),
            "most_plans": plans,
            "document": None if problem.opaque_rules else json_module.loads(dump_problem(problem)),
        },
        view=lambda: describe.problem_view(problem, plans),
        notes=notes,
    )


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
        notes += _write(out, lambda: dump_plan(best, problem))
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
        notes=notes + _write(out, lambda: documents.json_text(document)),
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments
        Words after the program's name; None: those of this process.

    Returns
    -------
    int
        The exit code (`ExitCode`). Errors are one message on standard error, never a traceback.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    as_json, debug = "--json" in words, "--debug" in words
    words = [word for word in words if word != "--debug"]
    try:
        answer = typer.main.get_command(app).main(words, prog_name="gapless", standalone_mode=False)
        if answer == ExitCode.INTERRUPTED:  # how newer typers hand on Ctrl-C; older ones raise Abort
            raise KeyboardInterrupt
        return _print(answer, as_json=as_json) if isinstance(answer, Answer) else int(answer or 0)
    except BrokenPipeError:
        discard_output()
        return ExitCode.BROKEN_PIPE
    except (Exception, KeyboardInterrupt) as error:
        if debug:
            traceback.print_exc()
        return _fail(error, as_json=as_json)


def _print(answer: Answer, *, as_json: bool) -> int:
    if as_json:
        sys.stdout.write(documents.json_text(answer.document()))
    else:
        console(sys.stdout).print(answer.view())
    sys.stdout.flush()
    for note in answer.notes:
        console(sys.stderr).print(clean(note), soft_wrap=True)
    return answer.code


def _fail(error: BaseException, *, as_json: bool) -> int:
    """Say what went wrong, once, where it is looked for."""
    if isinstance(error, _UsageError):
        path = getattr(getattr(error, "ctx", None), "command_path", "gapless")
        code, text = ExitCode.USAGE, f"{error.format_message()} See `{path} --help`."  # type: ignore[attr-defined]
    else:
        code, text = code_of_error(error), _message(error)
    if as_json:
        sys.stdout.write(documents.json_text(documents.error_document(error, code, text)))
        sys.stdout.flush()
    words = Text("error: ", style="bold red").append(clean(text), style="not bold default")
    console(sys.stderr).print(words, soft_wrap=True)
    return code


def _message(error: BaseException) -> str:
    match error:
        case GaplessError():
            return str(error)
        case KeyboardInterrupt() | typer.Abort():
            return "interrupted"
        case OSError():
            return f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}"
    return (
        f"gapless has a bug: {type(error).__name__}: {error}. "
        "Please report it with the output of the same command with --debug"
    )


def _write(out: Path | None, text: Callable[[], str]) -> list[str]:
    if out is None:
        return []
    save(text(), out)
    return [f"wrote {out}"]


def _bytes(mebibytes: int | None) -> int | None:
    return None if mebibytes is None else mebibytes * 2**20
