"""A scenario: what each policy makes of it, in numbers, in words, as tables and as charts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..api.coordination import Coordination, CoordinationBound
from ..formulations.coordination.record import Record, covered_us, percentile
from ..formulations.coordination.simulation import Conditions
from ..formulations.hardware import Platform
from ..solvers.coordination.policies import SHIPPED, policy_names
from . import blocks
from .blocks import Block, Cell, Column, Section, Sentence, Shown, Table, Unit, table, titled
from .charts import Axis, Bar, Bars, Colour, Kind, Line, Mark, Part, Plane, Series, Tone, Track
from .words import capital, counted, percent, span_seconds


def rates_chart(records: Sequence[Record]) -> Bars:
    """Return frames or requests a second by policy."""
    unit = "Frames" if records[0].frames else "Requests"
    return _by_policy(f"{unit} a second", records, rate, lambda record: f"{rate(record):,.2f}")


def in_time_chart(records: Sequence[Record]) -> Bars | None:
    """Return shares in time by policy; None: nothing has a deadline."""
    if all(record.share_in_time() is None for record in records):
        return None
    return _by_policy("In time", records, _in_time, lambda record: share_words(record.share_in_time()))


def deadlines_chart(runs: Sequence[Coordination]) -> Plane:
    """Return the share of requests in time by the multiplier of their deadlines (Band, Fig. 18)."""
    across = [(found.scenario.applications[0].deadline_permille or 0) / 1000 for found in runs]
    series = []
    for index, record in enumerate(runs[0].records):
        records = [found.records[index] for found in runs]
        points = [(x, 100 * _in_time(each)) for x, each in zip(across, records, strict=True)]
        marks = (
            Mark(
                x=x,
                y=y,
                facts=(
                    ("policy", record.policy),
                    ("deadline", deadline_words(found)),
                    ("in time", share_words(each.share_in_time())),
                ),
            )
            for (x, y), found, each in zip(points, runs, records, strict=True)
        )
        series.append(Series(name=record.policy, lines=(Line(points=tuple(points)),), marks=tuple(marks)))
    return Plane(
        kind=Kind.LINES,
        title="Requests in time by deadline",
        noun="deadline",
        across=Axis.around("deadline, 99th percentiles of the time alone", across, logarithmic=False),
        upwards=Axis(name="requests in time", unit="%", low=0, high=105),
        series=tuple(series),
    )


def _in_time(record: Record) -> float:
    return record.share_in_time() or 0.0


def _by_policy(
    title: str, records: Sequence[Record], value: Callable[[Record], float], words: Callable[[Record], str]
) -> Bars:
    best = max(records, key=value)
    return Bars(
        title=title,
        across=Axis(name=title, low=0, high=value(best) or 1.0),
        rows=tuple(
            Bar(
                name=record.policy,
                tracks=(
                    Track(
                        parts=(Part(start=0, length=value(record), colour=Tone.MEASURED),),
                        text=words(record),
                    ),
                ),
                strong=record is best,
            )
            for record in records
        ),
    )


def record_chart(record: Record, start_us: float, end_us: float) -> Bars:
    """Return what each unit does when: its chunks, coloured by network, and when it is away."""
    networks = {request.number: request.network for request in record.requests}
    rows = []
    for unit, name in enumerate(record.units):
        pieces: list[tuple[float, float, Colour, bool]] = [
            (span.start_us, span.end_us or record.end_us, Tone.IDLE, False)
            for span in record.away
            if span.unit == unit
        ]
        for each in (each for each in record.ran if each.unit == unit):
            pieces.append((each.start_us, each.end_us, networks[each.request], each.silent))
            pieces += [(each.start_us, each.end_us, Tone.LOST, False)] if each.cut_off else []
        parts = [
            Part(start=left / 1000, length=(right - left) / 1000, colour=colour, faded=faded)
            for start, end, colour, faded in pieces
            if (left := max(start, start_us)) < (right := min(end, end_us))
        ]
        busy = percent(round(1000 * record.utilisation[unit]))
        rows.append(Bar(name=name, tracks=(Track(parts=tuple(parts), text=busy, note="busy"),)))
    used = {part.colour for row in rows for track in row.tracks for part in track.parts}
    legend: list[tuple[Colour, str]] = [(n, name) for n, name in enumerate(record.networks) if n in used]
    legend += [(Tone.LOST, "cut off")] if Tone.LOST in used else []
    legend += [(Tone.IDLE, "not available")] if Tone.IDLE in used else []
    return Bars(
        title=record.policy,
        across=Axis(name="time", unit="ms", low=start_us / 1000, high=end_us / 1000),
        rows=tuple(rows),
        legend=tuple(legend),
        faded="fell back silently" if any(each.silent for each in record.ran) else "",
        ticked=True,
    )


def frame_latencies_us(record: Record) -> list[float]:
    """Return how long each frame took that ended, ascending."""
    return sorted(frame.end_us - frame.start_us for frame in record.frames if frame.end_us is not None)


def rate(record: Record) -> float:
    """Return frames a second, or where there are no frames answered requests a second."""
    if record.frames:
        return record.frames_per_s or 0.0
    answered = sum(request.end_us is not None for request in record.requests)
    return answered * 1e6 / record.end_us if record.end_us else 0.0


def share_words(share: float | None) -> str:
    """Return a share of requests in words; "-" where it has no meaning."""
    return "-" if share is None else f"{100 * share:.1f} %"


def requests_words(records: Sequence[Record]) -> str:
    """Return how many requests came: a range where frames come when the last one is done."""
    counts = [len(record.requests) for record in records]
    least, most = min(counts), max(counts)
    return counted(most, "request") if least == most else f"{least:,} to {counted(most, 'request')}"


def units_words(platform: Platform) -> str:
    """Return how many units there are, and which of them have several workers."""
    several = [f"{unit.name} with {unit.workers} workers" for unit in platform.units if unit.workers > 1]
    return ", ".join([counted(len(set(platform.places)), "unit"), *several])


def condition_words(how: Conditions) -> str:
    """Return how requests are served, as far as that is special; empty: it is not."""
    noise = how.noise
    special = [
        (how.late != "keep", "late requests are dropped"),
        (how.smoothing == 0, "expected times stay as they are"),
        (noise.estimates_permille, f"expected times are wrong by up to {percent(noise.estimates_permille)}"),
        (noise.times_permille, f"times vary by up to {percent(noise.times_permille)}"),
        (
            how.rest_kelvin is not None,
            f"units rest from {how.rest_kelvin or 0:g} K below the temperature at which they are lost",
        ),
    ]
    return "; ".join(words for there, words in special if there)


def deadline_words(found: Coordination) -> str:
    """Return the multiplier of the deadlines of a scenario."""
    return f"x {(found.scenario.applications[0].deadline_permille or 0) / 1000:g}"


def bound_title(found: CoordinationBound) -> str:
    """Return what was solved with everything known beforehand, and how much of it is proven."""
    parts = found.parts
    requests = sum(len(part.problem.formulation.arrivals(part.problem)) for part in parts)
    frames = f"{counted(len(parts), 'frame')} of {requests} requests"
    what = frames if found.term == "makespan" else parts[0].name
    proven = f"{found.proven} of {len(parts)} proven best"
    return f"With everything known beforehand: {what}, {proven}; times as in the table of costs"


def _class(found: CoordinationBound) -> str:
    """Return whom the bound holds for."""
    return (
        f"Best known and bound are of {found.parts[0].problem.plan_class}, one chunk at a time on each unit."
    )


def percentiles(record: Record) -> list[float | None]:
    """Return the median, 90 % and 99 % of the times of frames, or of requests where there are no frames."""
    latencies = frame_latencies_us(record) if record.frames else record.latencies_us()
    return [percentile(latencies, permille) for permille in (500, 900, 990)]


_MOST_AWAY = 20

WINDOW_US = 400_000.0
"""How much of each record is drawn."""

_MOST_POLICIES = 12


def coordination_blocks(
    runs: Sequence[Coordination], bound: CoordinationBound | None = None
) -> Iterator[Block]:
    """Yield what `gapless requests coordinate` answers: one run, or several with deadlines of their own.

    `bound`: how far each policy is from the best that is known, and from what is proven; None: not asked.
    """
    first, soft, pages = runs[0], blocks.Tone.SOFT, Shown.PAGES
    scenario, platform, records = first.scenario, first.setting.platform, first.records
    names = ", ".join(records[0].applications)
    yield Sentence(
        f" on {platform.name}, {units_words(platform)}: {requests_words(records)} of {names} "
        f"in {span_seconds(scenario.duration_us)}; simulated",
        lead=scenario.name,
    )
    if words := condition_words(first.conditions):
        yield Sentence(f"{capital(words)}.")
    sources = (scenario.source, first.setting.behaviour.source if first.setting.behaviour else "")
    yield from (Sentence(source, shown=pages) for source in sources if source)
    yield Section("Policies", tuple(_policies(runs)), place="policies")
    drawn = tuple(_lines(records)) if len(runs) == 1 else ()
    yield Section("Who works when", drawn, place="units", shown=pages)
    where = Shown.ALWAYS if len(runs) == 1 and len(records[0].applications) > 1 else pages
    yield Section("Applications", (applications(records),), place="applications", shown=where)
    away = tuple(_away(records)) if len(runs) == 1 else ()
    yield Section("When units were away", away, place="away")
    if bound is not None:
        about = "What policies reach on parts of the scenario, and what is known and proven of these parts."
        best = (Sentence(about, soft, shown=pages), titled(bound_table(bound)), Sentence(_class(bound), soft))
        yield Section("How far from the best", best, place="bound")


def _policies(runs: Sequence[Coordination]) -> Iterator[Block]:
    """Yield what each policy makes of a scenario, or of several with deadlines of their own."""
    records = runs[0].records
    told = policies(records, runs[0].setting.platform)
    if len(runs) == 1:
        yield from filter(None, (rates_chart(records), in_time_chart(records)))
        yield told
        return
    yield from (deadlines_chart(runs), deadlines(runs))
    words = (
        "The share of requests in time; x: times the 99th percentile of a network alone on its fastest unit."
    )
    yield Sentence(words, blocks.Tone.SOFT)
    yield Section("", (told,), shown=Shown.PAGES)


def _lines(records: Sequence[Record]) -> Iterator[Block]:
    """Yield the beginning of each record, and a table of its units."""
    yield Sentence(
        f"The first {span_seconds(round(WINDOW_US))}. What nobody was told of, because it fell back from "
        "another unit, is pale.",
        blocks.Tone.SOFT,
    )
    for record in records[:_MOST_POLICIES]:
        yield record_chart(record, 0.0, min(WINDOW_US, record.end_us))
        yield units(record)


def here_blocks(measured: Coordination, simulated: Coordination) -> tuple[Block, ...]:
    """Return what `requests coordinate --here` answers: each policy as measured and as simulated."""
    scenario, platform = measured.scenario, measured.setting.platform
    words = (
        f" on the units {', '.join(platform.unit_names)} of this machine: "
        f"{requests_words(measured.records)} in {span_seconds(scenario.duration_us)}"
    )
    about = "simulated: by the times of each network alone before; error: of the simulation"
    title = Sentence(words, lead=scenario.name)
    return title, both(measured.records, simulated.records, platform), Sentence(about, blocks.Tone.SOFT)


def overview() -> tuple[Block, ...]:
    """Return which scenarios and policies there are."""
    from ..profiler.coordination.catalog import scenario_names, shipped_scenario

    scenarios: list[Column[str]] = [
        Column("scenario", Unit.NAME, lambda name: name),
        Column("asks for", Unit.TEXT, lambda name: ", ".join(shipped_scenario(name).networks)),
        Column("what", Unit.LONG, lambda name: shipped_scenario(name).source),
    ]
    texts = {name: SHIPPED[name].text if name in SHIPPED else "of another package" for name in policy_names()}
    known: list[Column[str]] = [
        Column("policy", Unit.NAME, lambda name: name),
        Column("what it does", Unit.LONG, lambda name: texts[name]),
    ]
    return table("Scenarios", scenarios, scenario_names()), table("Policies", known, texts)


def policies(records: Sequence[Record], platform: Platform) -> Table:
    """Return a row for each policy: rates, shares in time, latencies, use of the units, decisions."""
    frames, drops = any(record.frames for record in records), any(record.dropped() for record in records)
    what = "a frame" if frames else "a request, from its arrival"
    kept = "done by their deadline, of all that have one"
    energy = "of the device, by the powers of its units, for each frame or request"
    columns: list[Column[Record]] = [
        Column("policy", Unit.NAME, lambda record: record.policy),
        Column("frames/s" if frames else "requests/s", Unit.FACTOR, rate, digits=2),
        Column("in time", Unit.SHARE, lambda record: record.share_in_time(), note=kept, optional=True),
        Column("dropped", Unit.COUNT, lambda r: r.dropped() if drops else None, optional=True),
        *_percentiles(what),
        Column("busy", Unit.SHARE, _busy(platform), note="mean share of the time that units work"),
        Column("energy", Unit.NANOJOULES, _energy_nj, digits=0, note=energy, optional=True),
        Column("watts", Unit.FACTOR, _watts, digits=2, note="mean power of the device", optional=True),
        Column("decision", Unit.MEASURED, _decision_us, note="time that the policy took here, in the median"),
        Column("decisions/s", Unit.COUNT, _decisions_per_s),
    ]
    return table("Policies", columns, records)


def _percentiles(what: str) -> Iterator[Column[Record]]:
    for place, title in enumerate(("median", "90 %", "99 %")):
        note = "" if place else f"time of {what}, as 90 % and 99 %"
        yield Column(title, Unit.MEASURED, _percentile(place), note=note)


def _percentile(place: int) -> Callable[[Record], float | None]:
    return lambda record: percentiles(record)[place]


def _busy(platform: Platform) -> Callable[[Record], float]:
    """Return the mean share of the time that a unit works, with one of its workers or several."""
    whole = platform.by_worker()
    places = dict(zip(whole.unit_names, whole.places, strict=True))  # of units without workers, too

    def share(record: Record) -> float:
        workers: dict[int, set[int]] = {}
        for index, name in enumerate(record.units):
            workers.setdefault(places[name], set()).add(index)
        busy_us = sum(covered_us(record.ran, each) for each in workers.values())
        return busy_us / len(workers) / record.end_us if record.end_us else 0.0

    return share


def _energy_nj(record: Record) -> float | None:
    energy = record.energy_per_frame_mj
    return None if energy is None else energy * 1e6


def _watts(record: Record) -> float | None:
    known = record.energy_mj is not None and record.end_us
    return 1000 * (record.energy_mj or 0.0) / record.end_us if known else None


def _decision_us(record: Record) -> float | None:
    median = percentile(sorted(record.decisions_ns), 500)
    return None if median is None else median / 1000


def _decisions_per_s(record: Record) -> int | None:
    return round(len(record.decisions_ns) * 1e6 / record.end_us) if record.end_us else None


def applications(records: Sequence[Record]) -> Table:
    """Return a row for each application and policy."""
    Row = tuple[int, str, Record]
    columns: list[Column[Row]] = [
        Column("application", Unit.NAME, lambda row: row[1]),
        Column("policy", Unit.NAME, lambda row: row[2].policy),
        Column("requests", Unit.COUNT, lambda row: len(row[2].of(row[0]))),
        Column("in time", Unit.SHARE, lambda row: row[2].share_in_time(row[0])),
        Column("dropped", Unit.COUNT, lambda row: row[2].dropped(row[0])),
        Column("median", Unit.MEASURED, lambda row: percentile(row[2].latencies_us(row[0]), 500)),
        Column("99 %", Unit.MEASURED, lambda row: percentile(row[2].latencies_us(row[0]), 990)),
    ]
    names = enumerate(records[0].applications)
    return table("Applications", columns, [(at, name, record) for at, name in names for record in records])


def deadlines(runs: Sequence[Coordination]) -> Table:
    """Return the share in time of each policy by the multiplier of the deadlines."""

    def share(run: int) -> Callable[[tuple[Record, ...]], float | None]:
        return lambda records: records[run].share_in_time()

    columns: list[Column[tuple[Record, ...]]] = [
        Column("policy", Unit.NAME, lambda records: records[0].policy),
        *(Column(deadline_words(found), Unit.SHARE, share(run)) for run, found in enumerate(runs)),
    ]
    rows = zip(*(found.records for found in runs), strict=True)
    return table("In time, by deadline", columns, rows)


def units(record: Record) -> Table:
    """Return how busy each unit was."""
    columns: list[Column[int]] = [
        Column("unit", Unit.NAME, lambda unit: record.units[unit]),
        Column("busy", Unit.SHARE, lambda unit: record.utilisation[unit]),
        Column("chunks", Unit.COUNT, lambda unit: sum(each.unit == unit for each in record.ran)),
    ]
    return table(f"Units: {record.policy}", columns, range(len(record.units)))


def both(measured: Sequence[Record], simulated: Sequence[Record], platform: Platform) -> Table:
    """Return three rows for each policy: what was measured, what was simulated, and the error of that."""
    Row = tuple[str, Record, Record | None]

    def error(of: Callable[[Record], float | None]) -> Callable[[Row], Cell]:
        def cell(row: Row) -> Cell:
            now, was = of(row[1]), None if row[2] is None else of(row[2])
            if row[2] is None:
                return Cell(now)
            known = now is not None and was
            return Cell(now / was - 1 if known and now is not None and was else None, unit=Unit.CHANGE)

        return cell

    def own(of: Callable[[Record], float | None]) -> Callable[[Row], float | str | None]:
        return lambda row: of(row[1]) if row[2] is None else ""

    columns: list[Column[Row]] = [
        Column("policy", Unit.NAME, lambda row: row[1].policy if row[0] == "measured" else ""),
        Column("how", Unit.TEXT, lambda row: row[0]),
        Column("in time", Unit.SHARE, own(lambda record: record.share_in_time())),
        *(
            Column(title, Unit.MEASURED, error(_percentile(place)))
            for place, title in enumerate(("median", "90 %", "99 %"))
        ),
        Column("busy", Unit.SHARE, own(_busy(platform))),
        Column("decision", Unit.MEASURED, own(_decision_us)),
    ]
    rows = [
        row
        for was, said in zip(measured, simulated, strict=True)
        for row in (("measured", was, None), ("simulated", said, None), ("error", said, was))
    ]
    return table("Measured and simulated", columns, rows)


def bound_table(found: CoordinationBound) -> Table:
    """Return what each policy reached, the best that is known and the bound, and the distances from them."""
    frames = found.term == "makespan"
    parts = len(found.parts) if frames else 1
    Row = tuple[str, int, int | None, int | None]

    def over(place: int) -> Callable[[Row], float | str | None]:
        def distance(row: Row) -> float | str | None:
            base = row[place]
            if not isinstance(base, int):
                return ""
            return f"{row[1] - base:+,}" if not frames else row[1] / base - 1 if base else None

        return distance

    first = ("mean frame", Unit.MEASURED) if frames else ("late", Unit.COUNT)
    columns: list[Column[Row]] = [
        Column("who", Unit.NAME, lambda row: row[0]),
        Column(*first, lambda row: row[1] / parts),
        Column("over the best known", Unit.CHANGE, over(2)),
        Column("over the bound", Unit.CHANGE, over(3)),
    ]

    def tone(row: Row) -> blocks.Tone:
        return blocks.Tone.STRONG if row[0] in ("best known", "bound") else blocks.Tone.PLAIN

    reached = zip(found.policies, found.reached, strict=True)
    rows: list[Row] = [(name, value, found.best, found.bound) for name, value in reached]
    rows += [("best known", found.best, None, found.bound), ("bound", found.bound, None, None)]
    return table(bound_title(found), columns, rows, tone=tone)


def _away(records: Sequence[Record]) -> Iterator[Sentence]:
    lines = [
        f"{record.policy}: {record.units[span.unit]} was away from {span_seconds(round(span.start_us))} "
        + ("to the end" if span.end_us is None else f"to {span_seconds(round(span.end_us))}")
        + f" ({span.cause})"
        for record in records
        for span in record.away
    ]
    yield from map(Sentence, lines[:_MOST_AWAY])
    if len(lines) > _MOST_AWAY:
        yield Sentence(f"... and {len(lines) - _MOST_AWAY} more times")
