"""What tuning found: the verdict, all candidates, the race as charts, and what it is based on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import ceil

from ..api.tuned import Loop, LoopStop, Round, Tuned
from ..executor.tuning.candidates import CandidateKind
from ..executor.tuning.result import (
    Evidence,
    Ground,
    PredictionQuality,
    Sustained,
    SustainedRow,
    Trust,
    TuningResult,
    TuningRow,
    TuningStop,
)
from ..formulations.plan import comes_back
from .blocks import Block, Cell, Column, Section, Sentence, Shown, Table, Tone, Unit, Value, table
from .charts import Axis, Bar, Bars, Facts, Kind, Line, Mark, Part, Plane, Series, Stroke, Track
from .front import PlanWords, front_blocks
from .words import counted, listed, microseconds, observed, simulated_words, tier_legend, tier_words

_STOPS = {
    TuningStop.DECIDED: "decided: all others are clearly slower",
    TuningStop.COMPLETE: "all rungs climbed",
    TuningStop.BUDGET: "the budget was used up",
    TuningStop.INTERRUPTED: "interrupted; go on with --resume",
}
_MEANINGS = {
    Ground.NOISE: "how much ratios vary from round to round",
    Ground.DRIFT: "how much slower the machine was in the last round",
    Ground.OTHERS: "share of the cores that they kept busy",
    Ground.SUMS: "mean error against chunks measured as such",
    Ground.UNSTEADY: "share of the profile that stayed unsteady",
    Ground.BASELINES: "mean difference",
    Ground.SUSTAINED: "the worst finalist, at the end",
}
_LOOP_STOPS = {
    LoopStop.SETTLED: "Settled: the best has stood the last round, and nothing is predicted to be faster",
    LoopStop.EXHAUSTED: "Ended: no plan was found that was not measured",
    LoopStop.ROUNDS: "All rounds are done",
    LoopStop.BUDGET: "The time was used up",
    LoopStop.INTERRUPTED: "Interrupted; go on with --resume",
}
TRUST = {Trust.HIGH: Tone.GOOD, Trust.LIMITED: Tone.WARN, Trust.NONE: Tone.BAD}
"""What to think of an answer by how far it can be trusted."""

FEW_VISITS = "too few visits"
"""What became of a candidate that is not clearly slower, but was hardly measured."""

_MORE = "all numbers: gapless show OUT/tuning.json, or --details; a page: gapless report OUT"
ENOUGH_VISITS = 2
"""So many visits of each candidate are the least that differences can be told from noise by."""

_UP_TO_S = 5
"""Missing seconds are rounded up to a multiple of it."""

NOT_TOLD = "not told by this system"


def rivals(result: TuningResult) -> list[str]:
    """Return how the winner compares with its ties, and with the best of the other kind, as sentences."""
    winner = result.winner
    if winner is None:
        return []
    near = [row for row in result.rows if row.candidate.key in result.ties[1:]]
    tied = [row.candidate.label for row in near if result.is_known_tie(row)]
    open_ = [row.candidate.label for row in near if not result.is_known_tie(row)]
    lines = [f"It ties with {listed(tied)}: the difference is within the noise."] if tied else []
    if open_:
        lines.append(f"Too few visits to tell it from {listed(open_)}.")
    if result.baseline_wins and result.has_verdict:
        plan = result.best(CandidateKind.PLAN)
        best = f" (the best one, {plan.candidate.label}, {compared(plan, result)})" if plan else ""
        return [*lines, f"A baseline wins: no plan is faster beyond the noise{best}."]
    lines += _other_class(result, winner)
    baseline = result.best(CandidateKind.BASELINE)
    if baseline is None:
        return lines
    return [*lines, f"The best baseline, {baseline.candidate.label}, {compared(baseline, result)}."]


def _other_class(result: TuningResult, winner: TuningRow) -> list[str]:
    """Return how the best plan compares whose units have one chunk each, or of those that come back."""

    def back(row: TuningRow) -> bool:
        streams = row.candidate.deployment.streams
        return any(stream.cycle is not None or comes_back(stream.chunks) for stream in streams)

    rows = [row for row in result.rows if row.ratio is not None and row.candidate.kind is CandidateKind.PLAN]
    in_step = winner.candidate.deployment.rounds is not None
    others = [
        row
        for row in rows
        if back(row) != back(winner) and (in_step or len(row.candidate.deployment.streams) == 1)
    ]
    best = min(others, key=lambda row: (row.place or len(rows), row.ratio), default=None)
    if best is None:
        return []
    ways = ("with one chunk per unit", "that comes back to a unit")
    if in_step:
        ways = ("whose requests have one chunk per unit", "whose requests come back to a unit")
    kind = ways[not back(winner)]
    return [f"The best plan {kind}, {best.candidate.label}, {compared(best, result)}."]


def compared(row: TuningRow, result: TuningResult, winner: str = "") -> str:
    """Return how a candidate compares with the winner: whoever shares its place is not called slower."""
    if result.is_known_tie(row):
        return f"ties with {winner or 'it'}"
    if row.candidate.key in result.ties:
        ratio = "" if row.ratio is None else f" ({row.ratio:.3f} times as long by now)"
        return f"had too few visits to be told from {winner or 'it'}{ratio}"
    if row.ratio is None:
        return f"was not compared with {winner or 'it'}"
    return f"takes {row.ratio:.3f} times as long{winner and f' as {winner}'}"


def effort(result: TuningResult) -> str:
    """Return why the race ended, how many were measured, and how long that took."""
    failed = sum(row.failure is not None for row in result.rows)
    counts = f"{result.measured} of {len(result.rows)} candidates measured"
    times = f"{result.measured_s:.1f} s {'played on a cost table' if result.simulated else 'measured'}"
    times += "" if result.simulated else f" in a race of {result.spent_s:.1f} s"
    if result.options.budget_s is not None:
        times += f" (budget {result.options.budget_s:.0f} s)"
    if result.pace == "latency":
        times += "; one request at a time, as the latency counts first"
    return "; ".join([_STOPS[result.stop], counts, *([f"{failed} failed"] if failed else []), times])


def next_step(result: TuningResult) -> str:
    """Return what to do where not all were measured twice, and what that takes; empty where they were."""
    running = [len(row.visit_us) for row in result.rows if row.failure is None]
    missing = sum(max(0, ENOUGH_VISITS - visits) for visits in running)
    if result.stop is not TuningStop.BUDGET or not missing:
        return ""
    words = "Go on with a larger --budget and --resume: what was measured is not measured again"
    if result.simulated or not sum(running):
        return f"{words}."
    more_s = _UP_TO_S * ceil(missing * result.spent_s / sum(running) / _UP_TO_S)
    return f"{words}; about {more_s} s more measure each candidate {ENOUGH_VISITS} times."


def quality_notes(result: TuningResult) -> list[str]:
    """Return why some numbers about predictions are absent, each reason once."""
    return list(dict.fromkeys(entry.absent for entry in result.quality if entry.absent))


def sustained_words(result: TuningResult) -> list[str]:
    """Return what a sustained run has shown, as sentences; none where there was none."""
    found = result.sustained
    if found is None:
        return []
    asked = f" of {_duration(found.asked_s)}; go on with --resume" if found.interrupted else ""
    order = {
        True: f"The order of the {found.beginning} held.",
        False: f"The order of the {found.beginning} did not hold: somebody who was slower is clearly faster.",
        None: "Whether the order held is not known: there were too few rounds.",
    }
    return [
        f"Sustained for {_duration(found.seconds)}{asked}; the {found.beginning} and the last "
        f"{found.window_s:.0f} s are compared.",
        order[found.order_held],
        *_machine_words(found),
        *(f"{_label(result, key)} failed: {failure.message}." for key, failure in found.failures),
    ]


def _machine_words(found: Sustained) -> Iterator[str]:
    heat = NOT_TOLD if found.celsius is None else "{:.0f} to {:.0f} C".format(*found.celsius)
    clock = NOT_TOLD if found.mhz is None else "{:.0f} to {:.0f} MHz".format(*found.mhz)
    slower = " (throttled)" if found.throttled else ""
    if heat == clock:
        yield f"Clock and temperature: {NOT_TOLD}."
    else:
        yield f"Clock: {clock}{slower}; temperature: {heat}."


def _label(result: TuningResult, key: str) -> str:
    return next(row.candidate.label for row in result.rows if row.candidate.key == key)


def _duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.1f} min"


def tuning_blocks(result: TuningResult, strong: str = "") -> tuple[Block, ...]:
    """Return the answer first, how far it can be trusted, then everybody; `strong`: as of `candidates`."""
    failed = [f"{row.candidate.label} failed: {row.failure.message}" for row in result.rows if row.failure]
    return (
        *verdict(result),
        Sentence(effort(result), Tone.SOFT),
        Section("What trust is based on", (evidence(result),), folded=True),
        _predictions_section(result),
        candidates(result, strong),
        *(Sentence(text, Tone.BAD, shown=Shown.BRIEF) for text in failed),
        *map(Sentence, sustained_words(result)),
        finalists(result),
        Sentence(_MORE, Tone.SOFT, shown=Shown.BRIEF),
    )


def _predictions_section(result: TuningResult) -> Section:
    """Return how good the predictions were, as a chart, in numbers, and which numbers are absent."""
    seen, chart = observed(simulated=result.simulated), predicted_chart(result, result.tables)
    lines = quality_notes(result)
    if chart is None:
        lines.insert(0, f"No candidate was both predicted and {seen}.")
    parts: list[Block] = [chart] if chart else []
    parts += [quality(result), *(Sentence(line, Tone.SOFT) for line in lines)]
    return Section(f"Predicted against {seen}", tuple(parts), shown=Shown.DETAILED)


def tuned_blocks(tuned: Tuned, words: PlanWords) -> tuple[Block, ...]:
    """Return what `tune` answers: trade-offs and rounds, if they were asked for, and the result."""
    units = tuned.problem.platform.unit_names
    blocks = (
        tuning_blocks(tuned.result) if tuned.loop is None else loop_blocks(tuned.loop, tuned.result, units)
    )
    if tuned.front is not None:
        blocks = (*front_blocks(tuned.problem, tuned.front, words), *blocks)
    if tuned.profile is None:
        return blocks
    return *blocks, Sentence(f"before the race: {tuned.profile.seconds:.1f} s of profile", Tone.SOFT)


def loop_blocks(loop: Loop, result: TuningResult, units: Sequence[str]) -> tuple[Block, ...]:
    """Return the rounds of a closed loop, and its result.

    `units`: names of the units, for the factors that were learned; empty: they are not known, and not shown.
    """
    return rounds(loop, result, units), Sentence(_loop_words(loop)), *tuning_blocks(result)


def verdict(result: TuningResult) -> list[Sentence]:
    """Return who wins, who ties, whether a baseline wins, and how far that can be trusted."""
    lines = [Sentence("", Tone.WARN, simulated_words(result.device))] if result.simulated else []
    winner = result.winner
    if winner is None or winner.period_us is None:
        lines.append(Sentence("", Tone.BAD, "nothing was measured"))
    else:
        lines.append(_winner_line(result, winner, winner.period_us.median))
        near = Tone.WARN if result.ties[1:] else Tone.PLAIN
        lines += [Sentence(sentence, near) for sentence in rivals(result)]
    if result.verdict is not None:
        lines.append(Sentence(result.verdict.line, TRUST[result.verdict.trust]))
    return [*lines, *map(Sentence, filter(None, [next_step(result)]))]


def _winner_line(result: TuningResult, winner: TuningRow, median_us: float) -> Sentence:
    deployment = winner.candidate.deployment
    rate = (len(deployment.streams) if deployment.rounds else 1) * 1e6 / median_us
    what = "is the fastest" if len(result.ties) == 1 else "wins a tie"
    if not result.has_verdict or not result.all_told:
        what = "is the fastest so far"
    return Sentence(
        f" {what}: {deployment.pace_name} {microseconds(median_us)}, {rate:,.1f} requests/s  [{deployment}]",
        Tone.GOOD if result.has_verdict else Tone.WARN,
        lead=winner.candidate.label,
    )


def candidates(result: TuningResult, strong: str = "") -> Table:
    """Return everybody who was measured, the winner first, with all that is known of them.

    "Comparable" periods are freed from drift (`TuningRow.comparable_us`); the others are as they were
    measured. `strong`: the key of the row that stands out; empty: the winner.
    """
    marked = strong or next(iter(result.ties), "")

    def tone(row: TuningRow) -> Tone:
        if row.failure is not None:
            return Tone.BAD
        left = Tone.PLAIN if row.left_after is None else Tone.SOFT
        return Tone.STRONG if row.candidate.key == marked else left

    idle = sum(row.period_us is None for row in result.rows)
    left = f"; {counted(idle, 'candidate')} did not run" if idle else ""
    return table(f"All candidates, by {result.pace_name}{left}", _columns(result), result.rows, tone=tone)


def _columns(result: TuningResult) -> list[Column[TuningRow]]:
    seen, pace, latency = observed(simulated=result.simulated), result.pace_name, result.latency_name
    files, own = Shown.FILES, Shown.FILES if result.pace == "latency" else Shown.DETAILED
    simulated = "simulated " if result.simulated else ""

    def period(end: str) -> Callable[[TuningRow], float | None]:
        return lambda row: None if row.period_us is None else getattr(row.period_us, end)

    return [
        Column("#", Unit.COUNT, lambda row: row.place, key="place"),
        Column("candidate", Unit.NAME, _name),
        Column("kind", Unit.TEXT, lambda row: row.candidate.kind, Shown.PAGES),
        Column("chunks", Unit.CODE, lambda row: str(row.candidate.deployment), key="deployment"),
        Column("units", Unit.COUNT, lambda row: len(row.candidate.deployment.units), files),
        *_predictions(result),
        Column(seen, Unit.MEASURED, lambda row: row.comparable_us, key="comparable"),
        Column("ratio", Unit.FACTOR, lambda row: row.ratio, Shown.DETAILED, key="times the winner's"),
        Column(f"{simulated}{pace}", Unit.MEASURED, period("median"), files),
        Column("least", Unit.MEASURED, period("least"), files),
        Column("most", Unit.MEASURED, period("most"), files),
        Column(f"{latency} p50", Unit.MEASURED, lambda row: row.latency_p50_us, own),
        Column(f"{latency} p95", Unit.MEASURED, lambda row: row.latency_p95_us, files),
        Column("requests", Unit.COUNT, lambda row: row.requests, files),
        Column("measured", Unit.SECONDS, lambda row: row.measured_s, files),
        *(_rung(number) for number in range(len(result.options.steps))),
        Column("numbers", Unit.TEXT, _checked, files),
        Column("outcome", Unit.TEXT, lambda row: outcome(row, result)),
    ]


def _predictions(result: TuningResult) -> Iterator[Column[TuningRow]]:
    """Yield what each table predicts, the first one that plans were made from, and what was learned."""
    for name in result.tables:

        def predicted(row: TuningRow, name: str = name) -> int | None:
            return row.candidate.predicted(name)

        key = f"predicted {name}"
        if name == result.tables[0]:
            note = f"by the table {name}" if len(result.tables) > 1 else ""
            yield _tier([predicted(row) for row in result.rows], result)
            yield Column("predicted", Unit.MEASURED, predicted, key=key, note=note)
        else:
            yield Column(f"{name} says", Unit.MEASURED, predicted, Shown.DETAILED, key=key)
    yield Column("90 % within", Unit.MEASURED, _interval, Shown.DETAILED, key="90 %", optional=True)


def _tier(values: Sequence[int | None], result: TuningResult) -> Column[TuningRow]:
    known = dict(zip((row.candidate.key for row in result.rows), tier_words(values), strict=False))
    note = tier_legend(result.pace_name)
    return Column(
        "tier", Unit.COUNT, lambda row: known.get(row.candidate.key), Shown.DETAILED, note=note, optional=True
    )


def _interval(row: TuningRow) -> tuple[float, float] | None:
    found = row.candidate.interval_us
    return (found[0], found[1]) if found else None


def _rung(number: int) -> Column[TuningRow]:
    return Column(f"rung {number + 1}", Unit.MEASURED, lambda row: row.rung_us[number], Shown.FILES)


def _name(row: TuningRow) -> Cell:
    """Return what a candidate is called; on which units it runs stands where there is room."""
    name, on, units = row.candidate.label.partition(" on ")
    return Cell(name, note=f"on {units}" if on else "")


def _checked(row: TuningRow) -> str | None:
    if row.verification is None:
        return None
    error = row.verification.worst_error
    return "not verified" if error is None else f"error {error:.1e}"


def outcome(row: TuningRow, result: TuningResult) -> Cell:
    """Return what became of a candidate, in a few words and where there is room in more."""
    key = row.candidate.key
    if row.failure is not None:
        return Cell("failed", Tone.BAD, f"({row.failure.message})")
    if key in result.ties and not result.has_verdict:
        return Cell("measured, without its strongest rival")
    if key in result.ties[1:]:
        known = result.is_known_tie(row)
        return (
            Cell("ties", note="with the winner")
            if known
            else Cell(FEW_VISITS, note="to tell from the winner")
        )
    if key in result.ties:
        if not result.all_told:
            return Cell("fastest so far", Tone.GOOD)
        return Cell("wins" if len(result.ties) == 1 else "wins the tie", Tone.GOOD)
    if row.left_after is not None:
        return Cell("slower", note=f"after rung {row.left_after + 1}")
    return Cell("slower" if row.period_us is not None else "not measured")


def finalists(result: TuningResult) -> Table:
    """Return how fast each finalist was at the beginning and at the end of a sustained run."""
    columns: list[Column[SustainedRow]] = [
        Column("finalist", Unit.NAME, lambda row: _label(result, row.candidate)),
        Column("at first", Unit.MEASURED, lambda row: row.first_us),
        Column("at the end", Unit.MEASURED, lambda row: row.last_us),
        Column("difference", Unit.CHANGE, lambda row: row.change_percent / 100),
        Column("visits", Unit.COUNT, lambda row: row.visits),
    ]
    rows = () if result.sustained is None else result.sustained.rows
    return table("Finalists under sustained load", columns, rows)


def evidence(result: TuningResult) -> Table:
    """Return each number that the verdict is based on."""
    columns: list[Column[Evidence]] = [
        Column("what", Unit.TEXT, lambda one: one.ground),
        Column("value", Unit.COUNT, lambda one: one.words),
        Column("fine up to", Unit.COUNT, lambda one: f"{one.limit_percent:g} %"),
        Column("meaning", Unit.TEXT, lambda one: _MEANINGS[one.ground]),
    ]

    def tone(one: Evidence) -> Tone:
        return Tone.WARN if one.doubtful else Tone.SOFT if one.percent is None else Tone.PLAIN

    rows = () if result.verdict is None else result.verdict.evidence
    return table("What trust is based on", columns, rows, tone=tone)


def quality(result: TuningResult) -> Table:
    """Return how good the predictions of each table were."""
    seen = observed(simulated=result.simulated)
    worse = "by how much the plan with the least prediction is slower than the fastest of all"

    def regret(one: PredictionQuality) -> float | None:
        return _of_percent(dict(one.regret_percent).get(1))

    columns: list[Column[PredictionQuality]] = [
        Column("table", Unit.TEXT, lambda one: one.table),
        Column("of", Unit.TEXT, lambda one: one.scope),
        Column("plans", Unit.COUNT, lambda one: one.plans),
        Column("Pearson", Unit.FACTOR, lambda one: one.pearson, note=f"correlation with {seen} times"),
        Column("Spearman", Unit.FACTOR, lambda one: one.spearman, note="that of their ranks"),
        Column("MAPE", Unit.SHARE, lambda one: _of_percent(one.mape_percent), note="mean error"),
        Column("regret of top 1", Unit.SHARE, regret, note=worse),
    ]
    return table("How good the predictions were", columns, result.quality)


def rounds(loop: Loop, answer: TuningResult, units: Sequence[str]) -> Table:
    """Return one row for each round of a loop, the one of the answer stands out."""

    def winner(one: Round, of: Callable[[TuningRow], Value]) -> Value:
        return None if one.result.winner is None else of(one.result.winner)

    def error(one: Round) -> float | None:
        found = [entry.mape_percent for entry in one.result.quality if entry.table == one.costs]
        return _of_percent(found[0]) if found else None

    def factor(unit: int) -> Callable[[tuple[int, int, Round]], float | None]:
        return lambda row: row[2].unit_factors[unit] if row[2].unit_factors else None

    columns: list[Column[tuple[int, int, Round]]] = [
        Column("round", Unit.COUNT, lambda row: row[0]),
        Column("new plans", Unit.COUNT, lambda row: row[1]),
        Column("best", Unit.NAME, lambda row: winner(row[2], lambda best: best.candidate.label)),
        Column(
            "predicted",
            Unit.MEASURED,
            lambda row: winner(row[2], lambda best: best.candidate.predicted(row[2].costs)),
        ),
        Column("measured", Unit.MEASURED, lambda row: winner(row[2], lambda best: best.comparable_us)),
        Column("error", Unit.SHARE, lambda row: error(row[2])),
        *(Column(f"x {name}", Unit.FACTOR, factor(unit), digits=2) for unit, name in enumerate(units)),
        Column("seconds", Unit.FACTOR, lambda row: row[2].result.spent_s, digits=1),
    ]
    numbered = [
        (n, new, one) for n, (one, new) in enumerate(zip(loop.rounds, loop.new_plans, strict=True), 1)
    ]

    def tone(row: tuple[int, int, Round]) -> Tone:
        return Tone.STRONG if row[2].result.run == answer.run else Tone.PLAIN

    return table("Rounds", columns, numbered, tone=tone)


def _loop_words(loop: Loop) -> str:
    """Return why a loop ended, and what could be measured next."""
    words, next_one = _LOOP_STOPS[loop.stop], loop.outlook
    if next_one is None:
        return f"{words}."
    times = f"{microseconds(next_one.predicted_us)} against {microseconds(next_one.best_us)}"
    words += f". Next would be [{next_one.plan}], predicted {times} of the best"
    if next_one.better and loop.stop is LoopStop.ROUNDS:
        words += f": go on with --rounds {len(loop.rounds) + 1} --resume"
    return f"{words}."


def _of_percent(percent: float | None) -> float | None:
    return None if percent is None else percent / 100


_MOST_LETTERS = 32
_COLOURS = {CandidateKind.PLAN: 0, CandidateKind.BASELINE: 1}


def predicted_chart(result: TuningResult, tables: Sequence[str]) -> Plane | None:
    """Return what some tables predict against what was measured; None: nothing to compare.

    Colours tell tables apart; of one table, plans from baselines.
    """
    one = tables[0] if len(tables) == 1 else ""
    names = list(map(str, (CandidateKind.PLAN, CandidateKind.BASELINE))) if one else list(tables)
    marks: dict[str, list[Mark]] = {name: [] for name in names}
    for row in result.rows:
        for name, predicted in row.candidate.predicted_us:
            measured = row.comparable_us
            if name not in tables or measured is None or row.failure is not None:
                continue
            mark = Mark(
                x=predicted / 1000,
                y=measured / 1000,
                facts=_facts(row, name, predicted, measured, result),
                hollow=not one and row.candidate.kind is CandidateKind.BASELINE,
                ring=row is result.winner,
            )
            marks[str(row.candidate.kind) if one else name].append(mark)
    values = [value for found in marks.values() for mark in found for value in (mark.x, mark.y)]
    if not values:
        return None
    seen = observed(simulated=result.simulated)
    by = f" with {one} costs" if one else ""
    across = Axis.around(f"predicted {result.pace}{by}", values, unit="ms")
    upwards = Axis.around(f"{seen} {result.pace}", values, unit="ms")
    ends = (across.low, across.high)
    return Plane(
        kind=Kind.SCATTER,
        title=f"Predicted against {seen}",
        words=_words(result, seen),
        noun="candidate",
        across=across,
        upwards=upwards,
        series=tuple(
            Series(name=name if one else f"table {name}", marks=tuple(found))
            for name, found in marks.items()
            if found
        ),
        guides=(Line(points=tuple(zip(ends, ends, strict=True)), stroke=Stroke.DASHED, name="ideal"),),
        hollow="" if one else "hollow: baseline",
        ring="ring: winner",
    )


def _facts(row: TuningRow, name: str, predicted: int, measured: float, result: TuningResult) -> Facts:
    candidate = row.candidate
    return (
        ("candidate", candidate.label),
        ("chunks", str(candidate.deployment)),
        (f"predicted ({name})", microseconds(predicted)),
        (observed(simulated=result.simulated), microseconds(measured)),
        ("difference", f"{100 * (measured / predicted - 1):+.1f} %"),
        ("outcome", str(outcome(row, result).value)),
    )


def _words(result: TuningResult, seen: str) -> str:
    count = sum(
        row.comparable_us is not None and row.failure is None and bool(row.candidate.predicted_us)
        for row in result.rows
    )
    words = [
        f"{count} candidates, predicted {result.pace_name} to the right, {seen} {result.pace_name} upwards"
    ]
    for entry in result.quality:
        known = "-" if entry.pearson is None else f"{entry.pearson:.3f}"
        error = "-" if entry.mape_percent is None else f"{entry.mape_percent:.1f} %"
        words.append(f"table {entry.table}, {entry.scope}: correlation {known}, mean error {error}")
    return f"{'; '.join(words)}."


def candidates_chart(result: TuningResult) -> Bars:
    """Return how fast each candidate was, the winner on top."""
    found = [row for row in result.rows if row.comparable_us is not None and row.failure is None]
    bars = []
    for place, row in enumerate(found):
        kind, spread = row.candidate.kind, row.period_us
        part = Part(start=0, length=(row.comparable_us or 0.0) / 1000, colour=_COLOURS[kind], name=str(kind))
        ends = None if spread is None else (spread.least / 1000, spread.most / 1000)
        wins = " (winner)" if place == 0 and result.ties else ""
        label = row.candidate.label
        label = label if len(label) <= _MOST_LETTERS else f"{label[: _MOST_LETTERS - 1]}…"
        bars.append(Bar(name=f"{label}{wins}", tracks=(Track(parts=(part,), spread=ends),)))
    tracks = [track for bar in bars for track in bar.tracks]
    most = max((max(track.end, *(track.spread or (0.0,))) for track in tracks), default=1.0)
    seen = observed(simulated=result.simulated)
    return Bars(
        title="Candidates of the race, fastest first",
        across=Axis(name=f"{seen} {result.pace}", unit="ms", low=0, high=1.05 * most),
        rows=tuple(bars),
        legend=tuple((colour, str(kind)) for kind, colour in _COLOURS.items()),
    )
