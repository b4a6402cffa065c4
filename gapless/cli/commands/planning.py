"""Planning: plan, compare, check, simulate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...files import documents
from ...formulations.errors import InvalidInputError, MalformedPlanError
from ...question.fields import Only, Said, attributes, said
from ...question.subjects import SOLVING, Folder, Search
from ...question.values import SIZES_OF_BATCHES, TIME, count_form, names_in, text_form
from ...solvers.protocol import StopReason
from ..base.answer import Answer, command, command_line
from ..base.declared import check_writable
from ..base.exits import ExitCode, code_of_comparison, code_of_front, code_of_result
from ..base.general_options import output_option
from ..options.problem import OutOption, ProblemOptions, asking

if TYPE_CHECKING:
    from ...api.asked import Asked
    from ...files.plans import NamedPlan
    from ...formulations.problem import Problem
    from ...question.question import Question
    from ...solvers.result import SolveResult


_solving, _searched = partial(said, heading=SOLVING), attributes(SOLVING)
_many = attributes("Many problems")

_COMPARED = [each.name for each in Search.own_fields() if each.name != "pareto"]
"""How plans are searched for where backends are compared."""


@dataclass(frozen=True, kw_only=True)
class Compared(Said):
    """What is compared: backends, kinds of plans, orders of layers; on one problem or on many."""

    backends: str | None = _searched(
        "Comma-separated, each as for `plan --backend`; otherwise "
        "native, exhaustive, cpsat, z3, pulp; with --passage any "
        "native, exhaustive, cpsat, pulp, z3, fallback, one-unit; "
        "for pipelines native, cpsat, pulp, pipeedge, epipe-ga, pico-costs, pipedream, greedy; "
        "for groups native, cpsat, pulp, pico, pico-literal; "
        "for a workload with --passage ordered "
        "native, cpsat, pulp, hetero2pipe, annealing, band, pipe-it, serial; "
        "for other workloads and single requests native, cpsat, pulp, z3, sel, lst, heft; "
        "for convex parts native, cpsat, z3, pulp; all but the first with 10 s for each."
    )
    backend: str | None = _searched(
        "One more beside these, e.g. a heuristic of your own as module:Class or file.py:Class.",
        text_form("NAME"),
    )
    kinds: str | None = _searched(
        "Of a model over a cluster, instead of backends: what plans can be, comma-separated, each solved "
        "by its usual backend: one (pipeline), many (pipelines side by side), groups (of devices that "
        "share chunks), graph (groups with cuts anywhere in the graph).",
        text_form("all|LIST"),
    )
    layer_orders: str | None = _searched(
        "Of a network with branches, instead of backends: what plans cut, comma-separated, each solved "
        "by the usual backends until one has a proof: the given order of the layers (fixed), a better "
        "one (best), the graph itself (free).",
        text_form("all|LIST"),
    )
    instances: str | None = _many(
        "Compare on many problems instead of one: a folder of problem files; a file that names problems, "
        "or has them drawn by size and seed (`gapless tools schema instances`, or Python with a function "
        "`problems`); or shipped names, comma-separated, with * for any, e.g. pixel7a/*.",
        text_form("FOLDER|SPEC"),
    )
    jobs: int | None = _many(
        "Answers that are looked for at once; otherwise one: more make times longer.", count_form(1, 1024)
    )


ContestOutOption = Annotated[
    Path | None,
    output_option(
        "--out",
        "-o",
        help="Also write the JSON document to this file; of many problems: the folder for everything that is "
        "written, otherwise gapless-comparison.",
    ),
]


@command(
    "gapless plan pixel7a/alexnet-sparse --top 5 --out plan.json",
    "gapless plan pixel7a/octree --objective slack:50 --max-units 3",
    'gapless plan --workload "yolov4,bert" --platform kirin990 --time-limit 2s --out batch.json',
    "gapless plan --workload bertx4 --platform kirin990 --batches 1,4 --time-limit 2s",
    "gapless plan vit-large --platform epipe-case-1 --batch 64",
)
@asking
def plan(
    asked: Asked,
    *,
    backend: Annotated[
        str | None,
        _solving(
            "Who solves: a name (`gapless doctor` lists them), or a backend of your own as module:Class or "
            "file.py:Class; otherwise native, or the first exact one that can, where there is no native "
            "algorithm.",
        ),
    ] = None,
    batches: Annotated[
        tuple[int, ...],
        _solving(
            "Sizes of batches to choose from for each network of --workload, e.g. 1,2,4,8; of a problem file "
            "those whose costs it has, as networks of their own (net*4). A time limit is for all choices "
            "together.",
            SIZES_OF_BATCHES,
        ),
    ] = (),
    search: Search,
    out: OutOption = None,
) -> Answer:
    """Find the best plans of a problem with one backend."""
    from ...answers import plans
    from ..tasks.solving import class_notes, plan_watched, slots_notes

    if batches:
        return _in_batches(asked, batches, backend, search)
    problem = asked.problem
    if search.pareto is not None:
        return _traded(asked, search.pareto, backend, search)
    result = plan_watched(
        problem,
        backend,
        search.solver_options,
        strict_rules=search.strict_rules,
    )
    interrupted = result.stop is StopReason.INTERRUPTED

    def others() -> list[str]:
        return [] if interrupted else [*class_notes(asked, result), *slots_notes(problem, result)]

    return Answer(
        document=lambda: documents.result_document(problem, result),
        view=lambda: plans.result_blocks(problem, result, others()),
        code=ExitCode.INTERRUPTED if interrupted else code_of_result(result),
        notes=["interrupted: this is the best until then"] if interrupted else [],
        files={"out": lambda: _plans_text(problem, result, asked.question)},
    )


def _many_compared(
    options: ProblemOptions, *, compared: Compared, search: Search, folder: Folder, out: Path | None
) -> Answer:
    """Answer for `compare --instances`."""
    from ...answers.standings import contest_blocks
    from ...files.run import Entry
    from ...sweeps.contest_document import contest_document
    from ...sweeps.folder import CONTEST_FILE, CSV_FILE, SweepOptions
    from ...view.page.results import write_page
    from ..tasks.contest import contest_watched

    stray = [name for name in options.names if name != "--objective"]
    stray += [*search.options("top", "distance", "strict_rules"), *compared.options("kinds", "layer_orders")]
    if stray:
        raise InvalidInputError(
            f"{stray[0]} is about one problem, --instances about many: leave one of them away"
        )
    place = out or Path("gapless-comparison")
    if search.start is None:
        search = replace(search, start="none")
    found = contest_watched(
        compared.instances or "",
        _backends(compared.backends),
        compared.backend,
        objective=options.question.objective or "",
        options=search.solver_options,
        kept=SweepOptions(out=place, entry=folder.made(Entry), jobs=compared.jobs or 1),
    )
    page, table = place / CONTEST_FILE, place / CSV_FILE
    write_page(found, page, command=command_line())
    notes = [*found.notes, f"wrote {table}, {page}"]
    code = ExitCode.FAILURE if found.failed else ExitCode.OK
    if found.interrupted:
        left = found.total - len(found.answers)
        notes.append(f"interrupted: {left} answers are not there; the same command with --resume goes on")
    return Answer(
        document=lambda: contest_document(found),
        view=lambda: contest_blocks(found),
        code=ExitCode.INTERRUPTED
        if found.interrupted
        else ExitCode.VERIFICATION
        if found.disagreements
        else code,
        notes=notes,
    )


def _backends(names: str | None) -> Sequence[str] | None:
    return None if names is None else names_in("--backends", names)


def _traded(asked: Asked, pareto: str, backend: str | None, search: Search) -> Answer:
    """Answer for `plan --pareto`."""
    from ...answers.front import front_blocks
    from ...api.trade_offs import parse_terms
    from ...files.pareto_file import dump_front
    from ...view.presenter import presenter_of
    from ..tasks.solving import front_watched

    if asked.question.objective is not None or search.top > 1 or search.distance > 1:
        raise InvalidInputError("--pareto lists its own plans: leave out --objective, --top and --distance")
    problem = asked.problem
    front, interrupted = front_watched(
        problem, parse_terms(pareto), backend, search.solver_options, strict_rules=search.strict_rules
    )
    text = dump_front(front, problem, asked.question.texts())
    return Answer(
        document=lambda: documents.of_file(text),
        view=lambda: front_blocks(problem, front, presenter_of(problem)),
        code=ExitCode.INTERRUPTED if interrupted else code_of_front(front),
        files={"out": lambda: text},
    )


def _in_batches(asked: Asked, batches: Sequence[int], backend: str | None, search: Search) -> Answer:
    """Answer for `plan --batches`."""
    from ...answers.kinds import batches_blocks
    from ..tasks.solving import batches_watched

    found = batches_watched(asked, batches, backend, search.solver_options)
    best, document = found[0], documents.result_document(found[0].problem, found[0].result)
    question = replace(asked.question, workload=best.workload)
    return Answer(
        document=lambda: {**document, "workloads": documents.batches_data(found)},
        view=lambda: batches_blocks(found),
        code=code_of_result(best.result),
        files={"out": lambda: _plans_text(best.problem, best.result, question)},
    )


def _plans_text(problem: Problem, result: SolveResult, question: Question) -> str | None:
    """Return the plans of a result as a file; None: there are none."""
    from ...formulations.files import dump_plan, dump_plans

    plans = [candidate.plan for candidate in result.candidates]
    if len(plans) > 1:
        return dump_plans(plans, problem, question.texts())
    return dump_plan(plans[0], problem, question.texts()) if plans else None


@command(
    "gapless compare pixel7a/alexnet-sparse",
    "gapless compare pixel7a/octree --backends native,exhaustive --top 3",
    "gapless compare --instances 'pixel7a/*' --backends native,exhaustive",
)
@partial(asking, of_many=_many_compared)
def compare(
    asked: Asked,
    *,
    compared: Compared,
    search: Annotated[Search, Only.of(*_COMPARED)],
    folder: Annotated[Folder, Only.of("resume", "overwrite")],
    out: ContestOutOption = None,
) -> Answer:
    """Solve a problem, or many, with several backends and compare what they find and prove, and how fast."""
    from ...answers import plans
    from ...api.planning import default_backends
    from ...solvers.registry import get_backends
    from ...view.terminal.blocks import blocks_view
    from ..tasks.solving import compare_watched

    if compared.options("jobs") or folder:
        raise InvalidInputError(
            "--jobs, --resume and --overwrite are about many problems: name them with --instances"
        )
    check_writable(out)
    backend, backends = compared.backend, compared.backends
    if compared.kinds is not None:
        return _kinds_compared(asked, compared.kinds, backends, search)
    if compared.layer_orders is not None:
        if backends is not None:
            raise InvalidInputError("--layer-orders compares what plans cut: leave --backends away")
        return _orders_compared(asked, compared.layer_orders, backend, search)
    problem, names = asked.problem, _backends(backends)
    required = [*(names or ()), *([backend] if backend else [])]
    if backend is not None:
        names = [*(default_backends(problem).names if names is None else names), backend]
    comparison, interrupted = compare_watched(
        problem,
        None if names is None else get_backends(names),
        search.solver_options,
        strict_rules=search.strict_rules,
    )
    code = code_of_comparison(comparison, required=[each.name for each in get_backends(required)])
    notes = ["interrupted: the last backend shows its best until then"] if interrupted else []
    return Answer(
        document=lambda: documents.comparison_document(
            comparison, asked.question.texts(), interrupted=interrupted
        ),
        view=lambda: blocks_view(plans.compared_blocks(comparison), details=False),
        code=ExitCode.INTERRUPTED if interrupted else code,
        notes=notes,
        files={"out": None},
    )


def _kinds_compared(asked: Asked, kinds: str, backends: str | None, search: Search) -> Answer:
    """Answer for `compare --kinds`."""
    from ...answers.kinds import kinds_blocks
    from ...files.kinds_document import kinds_document
    from ..tasks.solving import kinds_watched

    if backends is not None:
        raise InvalidInputError("--backends compares who solves, --kinds what plans can be: give one of them")
    found = kinds_watched(asked.question, kinds, search.solver_options)
    return Answer(
        document=lambda: kinds_document(found),
        view=lambda: kinds_blocks(found),
        code=ExitCode.OK if any(one.throughput for one in found) else ExitCode.INFEASIBLE,
        files={"out": None},
    )


def _orders_compared(asked: Asked, orders: str, backend: str | None, search: Search) -> Answer:
    """Answer for `compare --layer-orders`; `backend` None: the usual ones until one has a proof."""
    from ...answers.kinds import orders_blocks
    from ...files.kinds_document import orders_document
    from ..tasks.solving import orders_watched

    if asked.question.layer_order is not None:
        raise InvalidInputError("--layer-orders compares orders of the layers: leave --layer-order away")
    found = orders_watched(asked.problem, orders, backend, search.solver_options)
    return Answer(
        document=lambda: orders_document(asked.problem, found),
        view=lambda: orders_blocks(asked.problem, found),
        code=ExitCode.OK if any(one.plan for one in found) else ExitCode.INFEASIBLE,
        files={"out": None},
    )


@command(
    "gapless tools check plan.json --plan 2",
    "gapless tools check pixel7a/alexnet-sparse plan.json --min-balance 60%",
)
@asking
def tools_check(asked: Asked, plan: NamedPlan) -> Answer:
    """Check a plan against its problem: its score, or everything that it breaks (exit code 6)."""
    from ...answers import plans
    from ...formulations.judge import score as score_of

    problem, judged = asked.problem, plan.plan
    try:
        score = score_of(problem, judged)
        violations = score.violations
    except MalformedPlanError as error:
        score, violations = None, error.violations
    return Answer(
        document=lambda: documents.check_document(problem, judged, score, violations),
        view=lambda: plans.check_blocks(problem, judged, score, violations),
        code=ExitCode.VERIFICATION if violations else ExitCode.OK,
    )


@command(
    "gapless simulate plan.json --requests 5",
    "gapless simulate batch.json",
)
@asking
def simulate(
    asked: Asked,
    plan: NamedPlan,
    *,
    requests: Annotated[
        int | None, typer.Option(min=1, max=100_000, help="Number of requests; otherwise 8.")
    ] = None,
    interval_us: Annotated[
        int | None, said("Between arrivals, e.g. 30ms; otherwise one period.", TIME)
    ] = None,
    task_slots: int | None = None,
) -> Answer:
    """Play a plan and show who works when: a number of requests, or the requests of its workload."""
    from ...answers import plans
    from ...formulations.simulate import simulate as play

    problem, played = asked.problem, plan.plan
    if problem.formulation.one_network:
        trace = play(
            problem,
            played,
            requests=8 if requests is None else requests,
            interval_us=interval_us,
            task_slots=task_slots,
        )
    elif requests is None and interval_us is None:
        trace = play(problem, played)
    else:
        raise InvalidInputError("--requests and --interval are for one network; a workload has its own")
    return Answer(
        document=lambda: documents.trace_document(problem, trace),
        view=lambda: plans.simulation_blocks(problem, trace),
    )
