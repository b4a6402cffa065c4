"""Tuning: profile, plan, measure the best plans and the baselines, keep the fastest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict

from ..executor.engine import Engine
from ..executor.engines.registry import engine_words, engines_on
from ..executor.graph.choices import Granularity
from ..executor.machine.state import fingerprint
from ..executor.model import Model, in_order_of, reordered
from ..executor.pipeline.runner import PipelineRunner
from ..executor.progress import Afresh, Ledger, Report, shown_on_terminal, silent
from ..executor.samples import Samples
from ..executor.simulated import SimulatedRunner
from ..executor.tuning.candidates import (
    APART,
    FIRST_APART,
    TuningCandidate,
    baselines,
    plan_candidates,
    predicted,
    ranked,
    without_duplicates,
)
from ..executor.tuning.racing import Rung, TuningMode, TuningOptions
from ..executor.tuning.result import TableFacts
from ..executor.tuning.store import Store
from ..formulations.co_run import BUILT_IN_MODELS, LEARNED
from ..formulations.costs import CostTable
from ..formulations.energy import ENERGY, lacking
from ..formulations.errors import InvalidInputError
from ..formulations.hardware import Platform
from ..formulations.judge import check
from ..formulations.limits import OF_REQUESTS, Limits
from ..formulations.operation import operation_of
from ..formulations.problem import Problem
from ..formulations.reordering import order_words, parse_order
from ..formulations.rules import AnyRule, RuleFunction
from ..formulations.terms import Objective
from ..profiler.profile import Method, Profile, ProfileOptions
from ..profiler.summary import ANY_NOISE, defects
from ..solvers.protocol import SolveOptions
from ..solvers.registry import get_backends
from .asked import Words, asked_problem
from .closed_loop import (
    Intervals,
    TuningSetup,
    check_rounds,
    close_loop,
    keep_session,
    knowledge_from,
    known_before,
)
from .comparison import Comparison
from .engines import EngineChoice, engines_of, resolve_engine
from .execution import (
    DEFAULT_METHOD,
    models_for,
    open_store,
    placed,
    profiled_problem,
    resolve_model,
    take_profile,
)
from .graphs import with_parts, with_side_by_side
from .groups import check_in_pieces, groupable, parse_groups, tables_of_groups
from .layer_orders import check_order_word, with_layer_order
from .models import open_model
from .problems import states_of, with_pipelines, with_states
from .samples import named_with
from .trade_offs import measured_front, parse_terms
from .tuned import LoopStop, Tuned, executions_of

MOST_SUSTAINED_S = 86_400.0
"""Longest time that finalists run: a day."""


def checked(
    subject: object,
    objective: str | Objective | None,
    *,
    rounds: int,
    sustain_s: float | None,
    pipelines: str | int | None,
    groups: str | int | None = None,
) -> Objective:
    """Return what counts, and refuse what cannot be done before anything is measured."""
    wanted = _wanted(subject, objective)
    if pipelines is not None and wanted.first == "latency":
        raise InvalidInputError(
            f"pipelines={pipelines} makes no request faster, and the latency counts first: leave one of "
            "them out"
        )
    if groups is not None:
        parse_groups(groups)
        _check_groups(subject, rounds=rounds, pipelines=pipelines)
    several = isinstance(subject, Problem) and not subject.formulation.correctable
    if rounds > 1 and (pipelines is not None or (several and not _has_workload(subject))):
        raise InvalidInputError(
            f"rounds is {rounds}: corrections are learned from plans of a single pipeline; leave the rounds "
            "out, or the pipelines side by side"
        )
    check_rounds(rounds, objective=wanted)
    if sustain_s is not None and not 0 < sustain_s <= MOST_SUSTAINED_S:
        raise InvalidInputError(f"sustain_s is {sustain_s}, must be above 0 and at most {MOST_SUSTAINED_S:g}")
    return wanted


def check_limits(subject: object, limits: Limits | None) -> None:
    """Refuse limits that have no meaning for what is tuned, before anything is measured."""
    if limits is not None and isinstance(subject, Problem):
        subject.with_limits(**limits.in_use())
    elif limits is not None:
        for name in OF_REQUESTS:
            if getattr(limits, name) is not None:
                raise InvalidInputError(f"{name} is about several requests: name a problem with a workload")


def check_backends(backends: Sequence[str]) -> None:
    """Refuse backends that are not there, or none at all, before anything is measured."""
    if not backends:
        raise InvalidInputError('backends is empty: name one at least, e.g. ("native",)')
    get_backends(backends)


def check_layer_order(
    layer_order: str | None, *, rounds: int, pipelines: str | int | None, groups: str | int | None
) -> str:
    """Return what plans cut: the order of the network where nothing is said."""
    order = "fixed" if layer_order is None else layer_order
    check_order_word(order)
    if order == "free":
        several = rounds if rounds > 1 else None
        for name, given in (("pipelines", pipelines), ("groups", groups), ("rounds", several)):
            if given is not None:
                raise InvalidInputError(
                    f"{name}={given} is about one order of the layers: leave it out, or the free order"
                )
    elif order != "fixed" and groups is not None:
        raise InvalidInputError(
            f"groups={groups} are of pieces in the order of the network: leave them out, or the other order"
        )
    return order


def _check_state(state: object, *, rounds: int, pipelines: object, groups: object, order: str) -> None:
    """Refuse what states of requests cannot be kept by."""
    several, free = rounds if rounds > 1 else None, order if order == "free" else None
    about = {"pipelines": pipelines, "groups": groups, "rounds": several, "layer_order": free}
    for name, given in about.items():
        if state and given is not None:
            raise InvalidInputError(f"{name}={given} knows nothing of states: leave it out, or state")


def _check_groups(subject: object, *, rounds: int, pipelines: str | int | None) -> None:
    if isinstance(subject, Problem):
        raise InvalidInputError(
            "groups are for a model, whose tiles are measured; leave them out: a problem of groups says what "
            "groups there may be, and other problems are about whole layers"
        )
    if pipelines is not None:
        raise InvalidInputError(
            "pipelines race beside groups without being asked for: leave one of the two out"
        )
    if rounds > 1:
        raise InvalidInputError(
            f"rounds is {rounds}: corrections are learned from plans in which each unit has layers of its "
            "own; leave the rounds out, or the groups"
        )


def _wanted(subject: object, objective: str | Objective | None) -> Objective:
    """Return what counts: what is asked for, or else what a problem says."""
    if objective is None:
        return subject.objective if isinstance(subject, Problem) else Objective()
    return Objective.parse(objective) if isinstance(objective, str) else objective


def _has_workload(subject: object) -> bool:
    return isinstance(subject, Problem) and not subject.formulation.one_network


def check_traded(
    pareto: str | Sequence[str] | None,
    backends: Sequence[str],
    *,
    rounds: int,
    distance: int,
    objective: str | Objective | None,
) -> tuple[str, ...]:
    """Return the terms of which trade-offs are measured, none where they are not asked for."""
    if pareto is None:
        return ()
    stray = {
        "several rounds": rounds > 1,
        "a distance": distance > 1,
        "an objective": objective is not None,
        f"{len(backends)} backends": len(backends) != 1,
    }
    found = [what for what, there in stray.items() if there]
    if found:
        raise InvalidInputError(
            f"trade-offs are all plans that no other is better than, found by one backend: leave out "
            f"{' and '.join(found)}"
        )
    return parse_terms(pareto)


def check_powers(platform: Platform, terms: Sequence[str]) -> None:
    """Refuse trade-offs of energy on units whose powers are not known, before anything is measured."""
    reason = lacking(platform)
    if ENERGY in terms and reason:
        raise InvalidInputError(reason)


def for_fronts(options: TuningOptions) -> TuningOptions:
    """Return how trade-offs are measured: all for the same time, in turns."""
    return replace(options, mode=TuningMode.FIXED, rungs=options.rungs or (Rung(seconds=0.5, rounds=4),))


def opened(subject: Model | Problem | str | Path, order: str, *, in_pieces: bool = False) -> dict[str, Model]:
    """Return the models that are tuned, by name.

    Raises InvalidInputError: an order that is given in numbers is not one of their layers; InvalidPlanError:
    their layers run in their own order only.
    """
    if isinstance(subject, Problem):
        operation_of(subject).check_executable(subject)
        models = models_for(subject)
    else:
        if in_pieces and isinstance(subject, str | Path):
            subject = open_model(subject, granularity=Granularity.PIECE)
        model = resolve_model(subject)
        if in_pieces:
            check_in_pieces(model)
        models = {model.network.name: model}
    for each in models.values() if order[:1].isdecimal() else ():
        reordered(each, parse_order(order, each.network))
    return models


def units_of(
    subject: object,
    platform: Platform | None,
    engine: EngineChoice,
    models: Mapping[str, Model],
    *,
    grouped: bool,
    traded: Sequence[str],
) -> tuple[Engine, Platform]:
    """Return the engine, and the units: those of a problem, those that are given, or those of this device.

    Raises InvalidInputError: as for `placed`; groups, which compute a chunk together, are of one engine.
    """
    if isinstance(subject, Problem):
        return engines_of(subject, engine, *models.values())
    found, units = placed(
        resolve_engine(engine, *models.values()) if grouped else engine, platform, *models.values()
    )
    if grouped:
        groupable(units)
    check_powers(units, traded)
    return found, units


def setting_words(platform: Platform, engine: Engine) -> str:
    """Return what measurements depend on besides candidates: this machine, and the engines of the units."""
    return f"{fingerprint().digest} {engine_words(engines_on(platform.units, engine).values())}"


def tables_of(
    taken: Profile,
    model: Model,
    engine: Engine,
    first: str,
    *,
    groups: str | int | None,
    ledger: Ledger,
    report: Report,
) -> dict[str, Problem]:
    """Return the problem with each table of costs, the first one being that which plans are made from."""
    tables = {name: profiled_problem(taken, costs=name) for name in (first, *BUILT_IN_MODELS)}
    if groups is None:
        return tables
    return tables_of_groups(tables, taken, model, engine, groups, ledger=ledger, report=report)


def in_layer_order(
    tables: Mapping[str, Problem], models: Mapping[str, Model], order: str, goal: Objective
) -> tuple[dict[str, Problem], dict[str, Model]]:
    """Return tables and models with their layers in an order (`with_layer_order`).

    The best order is chosen by the first table, which plans are made from. Where the order is free, only that
    one has to be a single table, and the others are left out if they are not; where the latency counts, too,
    layers are side by side (`with_side_by_side`).
    """
    first = next(iter(tables))
    if order == "free":
        single = (name for name, table in tables.items() if name == first or table.co_run_costs is None)
        freed = with_side_by_side if goal.first == "latency" else with_parts
        return {name: freed(tables[name]) for name in single}, dict(models)
    if order == "fixed":
        return dict(tables), dict(models)
    chosen = order_words(with_layer_order(tables[first], order).network.order) or "fixed"
    found = {name: with_layer_order(table, chosen) for name, table in tables.items()}
    return found, {each.name: in_order_of(models[each.name], each) for each in found[first].networks}


def facts_of(taken: Profile) -> TableFacts:
    """Return what is known of measured tables."""
    unsteady = [bool(defects(one.busy)) for one in taken.measured]
    return TableFacts(
        sums_error=taken.check_error, unsteady=sum(unsteady) / len(unsteady) if unsteady else None
    )


DEFAULT_TOP = 10

RIVALS_S = 10.0
"""Longest search for plans of another shape that race beside those that were asked for."""

PROFILING = ProfileOptions(most_far=ANY_NOISE)
"""A noisy profile is no reason to give up: what it proposes is measured, beside the baselines."""


class TuneWords(TypedDict, total=False):
    """What `tune` and `tune_simulated` are told alike."""

    backends: Sequence[str]
    top: int
    distance: int
    pipelines: str | int | None
    objective: str | Objective | None
    limits: Limits | None
    rules: Iterable[RuleFunction | AnyRule]
    rounds: int
    sustain_s: float | None
    pareto: str | Sequence[str] | None
    options: TuningOptions
    time_limit_s: float | None
    store: Store | str | Path
    resume: bool


def tune(
    subject: Model | Problem | str | Path,
    *,
    platform: Platform | None = None,
    engine: EngineChoice = None,
    backends: Sequence[str] = ("native",),
    top: int = DEFAULT_TOP,
    distance: int = 1,
    pipelines: str | int | None = None,
    groups: str | int | None = None,
    layer_order: str | None = None,
    state: Mapping[str, str] | None = None,
    objective: str | Objective | None = None,
    limits: Limits | None = None,
    rules: Iterable[RuleFunction | AnyRule] = (),
    costs: str | None = None,
    rounds: int = 1,
    sustain_s: float | None = None,
    pareto: str | Sequence[str] | None = None,
    options: TuningOptions = TuningOptions(),
    profile_options: ProfileOptions = PROFILING,
    time_limit_s: float | None = None,
    store: Store | str | Path = ":memory:",
    resume: bool = False,
    samples: Samples | None = None,
    report: Report | None = None,
) -> Tuned:
    """Profile a model, plan it, run the best plans and the baselines on this device, keep the fastest.

    Parameters
    ----------
    subject
        A model or its locator, or a problem that was profiled before, e.g. with a workload. Of several models
        `profile_together` makes the problem of sharing the units, and `open_models` one network.
    platform, engine, profile_options
        As for `profile`; a problem has its units and their engines already, which one engine may replace.
    backends, top, distance, objective, limits, rules, time_limit_s
        Which backends make how many plans of what, and how different; plans of several backends are merged.
        Limits and rules hold of what is predicted, for baselines, too.
    pipelines
        How many pipelines may run side by side, as for `plan`. None: plans of a single pipeline are made, and
        where nothing speaks against it (rules, the latency, several rounds) a third as many of several
        pipelines race beside them.
    groups
        Most units of a group that computes a chunk together, each some of its rows: "all" or a number. The
        model is cut into pieces, and tiles of them are measured, too. Plans of one and of several pipelines
        race beside, as above. For a model from one ONNX file. None: no unit shares a chunk.
    layer_order
        As for `with_layer_order`, for a model from one ONNX file. "best": all plans are of an order that is
        chosen by the first table, or of one that is given in numbers. "free": parts of the graph, in any
        order that it allows, race beside pipelines in the order of the network; for the latency, layers side
        by side (`with_side_by_side`) beside chunks one after the other; costs are of one table. None or
        "fixed": the order of the network.
    state
        Of a recurrent network: by input, the output whose last value it takes (`with_states`).
    costs
        Co-run cost model that plans are made from: "heavy", "isolated", "interpolated", "learned", or one of
        your own. Its predictions and those of the built-in ones are recorded. None: "isolated" where the
        latency counts first: candidates are then run one request at a time, so that units have no company.
        Else "learned" where the store has plans that were executed on this device before (`closed_loop`), and
        "heavy" where it has none. With "learned", or None, later rounds learn who slows whom; with others
        they correct that table.
    rounds
        Most rounds of the closed loop: with more than one, the costs are corrected by what was measured,
        planned with again, and so on (`closed_loop`). Not for the latency.
    sustain_s
        For how many seconds the finalists run in turns after the race (`executor.tuning.tuner`), to see
        whether they slow down and whether their order holds; None: not at all.
    pareto
        Instead of the best plans, all trade-offs of two or three terms, as for `gapless.pareto`: each is
        measured for the same time (`TuningMode.FIXED`), and none leaves. Their energy is that which the
        machine says it took, or else computed from measured times and the powers of the platform.
    options
        How to tune; the budget is for all rounds together, and for racing alone: profiling, planning and
        `sustain_s` do not count.
    store
        File of measurements; ":memory:" keeps none.
    resume
        Go on with what the store has of this very tuning run.
    samples
        Inputs that everything is measured and verified with (`read_samples`), in turn; None: those of the
        models.
    report
        Told of each step; None: a line on standard error says it, where that is a terminal.

    Returns
    -------
    Tuned
        Never a plan that is slower than the best baseline: then the baseline wins, and it says so.

    Raises
    ------
    GaplessError
        As for `profile` and `plan`; InvalidInputError when no backend finds a plan.

    Examples
    --------
    >>> import gapless
    >>> tuned = gapless.tune("squeezenet", engine="onnxruntime", top=4)  # doctest: +SKIP
    >>> print(tuned.result.winner.candidate.label)  # doctest: +SKIP
    plan 1
    >>> gapless.running.save_run(tuned, "gapless-out")  # doctest: +SKIP
    """
    check_limits(subject, limits)
    check_backends(backends)
    goal = checked(subject, objective, rounds=rounds, sustain_s=sustain_s, pipelines=pipelines, groups=groups)
    order = check_layer_order(layer_order, rounds=rounds, pipelines=pipelines, groups=groups)
    _check_state(state, rounds=rounds, pipelines=pipelines, groups=groups, order=order)
    traded = check_traded(pareto, backends, rounds=rounds, distance=distance, objective=objective)
    with ExitStack() as stack:
        report = stack.enter_context(shown_on_terminal(report))
        models = named_with(opened(subject, order, in_pieces=groups is not None), samples)
        for each in models.values():
            each.network.with_states(states_of(state or {}))  # refused before anything is profiled
        found, units = units_of(subject, platform, engine, models, grouped=groups is not None, traded=traded)
        kept = open_store(store, stack)
        how: dict[str, Any] = {"store": kept, "resume": resume, "report": report}
        taken, knowledge = None, None
        if isinstance(subject, Problem):
            tables = {subject.costs.provenance.method or "given": subject}
        else:
            (model,) = models.values()
            taken = take_profile(model, units, found, options=profile_options, **how)
            units = taken.platform
            ledger = kept if resume else Afresh(kept)
            if groups is None and pipelines is None and order == "fixed" and not state:
                told: dict[str, Any] = {"costs": costs, "goal": goal, "resume": resume}
                knowledge = known_before(taken, kept, setting_words(units, found), **told)
            first = costs or (LEARNED if knowledge and knowledge.ranks_plans else default_costs(goal))
            tables = tables_of(taken, model, found, first, groups=groups, ledger=ledger, report=report)
            tables |= {LEARNED: knowledge.after(()).problem()} if knowledge and first == LEARNED else {}
        tables = {name: with_states(table, state) for name, table in tables.items()} if state else tables
        tables, models = in_layer_order(tables, models, order, goal)
        setup = TuningSetup(
            runner=stack.enter_context(PipelineRunner(models, units, found, device=str(fingerprint()))),
            device=setting_words(units, found),
            backends=backends,
            solving=SolveOptions(top=top, distance=distance, time_limit_s=time_limit_s),
            options=for_fronts(options) if traded else options,
            facts=TableFacts() if taken is None else facts_of(taken),
            knowledge=knowledge,
            **how,
        )
        asked = _asked(tables, pipelines, objective, limits, rules)
        return _tuned(asked, taken, setup, rounds=rounds, sustain_s=sustain_s, traded=traded)


def tune_simulated(
    problem: Problem,
    truth: Problem,
    *,
    measured: Sequence[CostTable] = (),
    noise_permille: int = 0,
    seed: int = 0,
    backends: Sequence[str] = ("native",),
    top: int = DEFAULT_TOP,
    distance: int = 1,
    pipelines: str | int | None = None,
    objective: str | Objective | None = None,
    limits: Limits | None = None,
    rules: Iterable[RuleFunction | AnyRule] = (),
    rounds: int = 1,
    sustain_s: float | None = None,
    pareto: str | Sequence[str] | None = None,
    options: TuningOptions = TuningOptions(),
    time_limit_s: float | None = None,
    store: Store | str | Path = ":memory:",
    resume: bool = False,
    report: Report = silent,
) -> Tuned:
    """Tune on a simulated device: plan with one table, "execute" on another one.

    Parameters
    ----------
    problem
        What is planned, with the table that the plans are made from.
    truth
        The same problem with the table that the simulated device obeys.
    measured
        The isolated and the heavy table, where later rounds are to learn who slows whom; empty: they correct
        the table of the problem.
    noise_permille, seed
        Random variation of every execution.
    backends, top, distance, pipelines, objective, limits, rules, rounds, sustain_s, pareto, options
        As for `tune`.
    time_limit_s, store, resume, report
        As for `tune`.
    """
    names = tuple(table.costs.provenance.method for table in (problem, truth))
    if not all(names) or len(set(names)) == 1:
        names = ("planned", "truth")
    tables = dict(zip(names, (problem, truth), strict=True))
    check_limits(problem, limits)
    check_backends(backends)
    checked(problem, objective, rounds=rounds, sustain_s=sustain_s, pipelines=pipelines)
    traded = check_traded(pareto, backends, rounds=rounds, distance=distance, objective=objective)
    with ExitStack() as stack:
        obeyed = truth if pipelines is None else with_pipelines(truth, pipelines)
        setup = TuningSetup(
            runner=SimulatedRunner(obeyed, noise_permille=noise_permille, seed=seed),
            device=f"simulated {truth.fingerprint} noise {noise_permille} seed {seed}",
            backends=backends,
            solving=SolveOptions(top=top, distance=distance, time_limit_s=time_limit_s),
            options=for_fronts(options) if traded else options,
            store=open_store(store, stack),
            resume=resume,
            report=report,
            knowledge=knowledge_from(problem, measured),
        )
        asked = _asked(tables, pipelines, objective, limits, rules)
        return _tuned(asked, None, setup, rounds=rounds, sustain_s=sustain_s, traded=traded)


def _remembered(tuned: Tuned, setup: TuningSetup) -> Tuned:
    """Keep what was executed for later sessions on this device, where it was profiled."""
    if tuned.profile is not None:
        found = executions_of(tuned.problem, tuned.profile.tables, tuned.results)
        keep_session(found, setup.store, setup.device, tuned.results[0].run)
    return tuned


def _asked(
    tables: Mapping[str, Problem],
    pipelines: str | int | None,
    objective: str | Objective | None,
    limits: Limits | None,
    rules: Iterable[RuleFunction | AnyRule],
) -> dict[str, Problem]:
    """Return the problem with each table as it is asked for."""
    words = Words(objective=objective, pipelines=pipelines, limits=limits, rules=tuple(rules))
    return {name: asked_problem(table, words).problem for name, table in tables.items()}


def default_costs(objective: Objective) -> str:
    """Return the name of the table that one network is planned with, unless another one is asked for."""
    return str(Method.ISOLATED) if objective.first == "latency" else DEFAULT_METHOD


def _tuned(
    tables: Mapping[str, Problem],
    taken: Profile | None,
    setup: TuningSetup,
    *,
    rounds: int,
    sustain_s: float | None,
    traded: Sequence[str] = (),
) -> Tuned:
    problem = next(iter(tables.values()))
    if traded:
        return _remembered(_front_tuned(tables, taken, setup, traded, sustain_s=sustain_s), setup)
    comparison, plans = setup.plan(problem, top=setup.solving.top)
    knowledge = setup.knowledge
    foretold = Intervals(knowledge.after(()) if knowledge is not None and knowledge.earlier else None)
    if foretold.learned is None and _starts_apart(problem, setup.solving):
        apart = setup.replaced(distance=APART).plan(problem, top=FIRST_APART)[1]
        plans = list(dict.fromkeys([*apart, *plans]))[: max(len(plans), len(apart))]
    candidates = plan_candidates(plans, tables=tables)
    single = rounds == 1 and setup.solving.distance == 1
    for rival in operation_of(problem).rivals(problem) if single else ():
        # Plans of another shape hold a third of the places, however they are predicted.
        others = setup.plan(rival, top=-(-setup.solving.top // 3), most_s=RIVALS_S)[1]
        if not others:
            continue
        candidates += plan_candidates(others, tables=tables, planned=rival)
        candidates = ranked(without_duplicates(candidates))
    if not candidates:
        raise InvalidInputError(
            "no backend found a plan to tune; `gapless compare` on the profiled problem shows why"
        )
    first = setup.race(foretold([*candidates, *_allowed_baselines(tables)]), problem)
    loop = close_loop(tables, first, setup, rounds=rounds) if rounds > 1 else None
    result = first if loop is None else loop.answer
    if sustain_s is not None and (loop is None or loop.stop is not LoopStop.INTERRUPTED):
        result = setup.sustain(result, problem, seconds=sustain_s)
    tuned = Tuned(problem=problem, profile=taken, comparison=comparison, result=result, loop=loop)
    return _remembered(tuned, setup)


def _starts_apart(problem: Problem, solving: SolveOptions) -> bool:
    """Return whether the first plans are to be far apart: there is room for others, too."""
    plain = problem.formulation.one_network and problem.data is None
    return plain and solving.distance == 1 and solving.top >= 2 * FIRST_APART


def _front_tuned(
    tables: Mapping[str, Problem],
    taken: Profile | None,
    setup: TuningSetup,
    terms: Sequence[str],
    *,
    sustain_s: float | None,
) -> Tuned:
    """Measure trade-offs instead of the best plans."""
    problem = next(iter(tables.values()))
    front = setup.trade(problem, terms)
    if not front.points:
        raise InvalidInputError(
            f"no backend found a plan to tune; `gapless plan --pareto {','.join(terms)}` on the profiled "
            "problem shows why"
        )
    plans = [point.candidate.plan for point in front.points]
    result = setup.race([*plan_candidates(plans, tables=tables), *_allowed_baselines(tables)], problem)
    if sustain_s is not None:
        result = setup.sustain(result, problem, seconds=sustain_s)
    comparison = Comparison(problem=problem, results=(), failures=(), disagreements=())
    return Tuned(
        problem=problem,
        profile=taken,
        comparison=comparison,
        result=result,
        front=measured_front(front, problem, result.rows),
    )


def _allowed_baselines(tables: Mapping[str, Problem]) -> list[TuningCandidate]:
    """Return the baselines that keep the rules and limits of the problem, with what each table predicts.

    Replicas are several plans at once: what limits say of all units together nobody checks of them.
    """
    problem = next(iter(tables.values()))
    return [
        predicted(baseline, tables)
        for baseline in baselines(problem)
        if not (problem.limits.in_use() and baseline.deployment.plan is None)
        and not any(check(problem, plan) for plan in baseline.deployment.plans)
    ]
