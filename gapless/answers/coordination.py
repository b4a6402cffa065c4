"""A scenario: what each policy makes of it, in numbers, in words and as charts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..api.coordination import Coordination
from ..api.coordination_bound import CoordinationBound
from ..formulations.coordination.record import Record, percentile
from ..formulations.coordination.simulation import Conditions
from .charts import Axis, Bar, Bars, Colour, Kind, Line, Mark, Part, Plane, Series, Tone, Track
from .words import counted, microseconds, percent


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


def energy_words(record: Record) -> str:
    """Return the energy of a frame, or of a request, in words."""
    energy = record.energy_per_frame_mj
    return "-" if energy is None else f"{energy:,.0f} mJ"


def decision_words(record: Record) -> tuple[str, str]:
    """Return how long a decision took in the median, and how many a second there were."""
    took = sorted(record.decisions_ns)
    median = percentile(took, 500)
    words = "-" if median is None else f"{median / 1000:.1f} us"
    return words, f"{len(took) * 1e6 / record.end_us:,.0f}" if record.end_us else "-"


def legend(records: Sequence[Record]) -> str:
    """Return what the columns mean."""
    what = "a frame" if records[0].frames else "a request, from its arrival"
    words = [f"median, 90 %, 99 %: time of {what}", "busy: mean share of the time that units work"]
    if any(record.share_in_time() is not None for record in records):
        words.append("in time: done by their deadline, of all that have one")
    if any(record.energy_mj is not None for record in records):
        words.append("energy: of the device, by the powers in its file, for each frame or request")
    words.append("decision: time that the policy took here, in the median")
    return "; ".join(words)


def condition_words(how: Conditions) -> str:
    """Return how requests are served, as far as that is special; empty: it is not."""
    noise = how.noise
    special = [
        (how.late != "keep", "late requests are dropped"),
        (how.smoothing == 0, "expected times stay as they are"),
        (noise.estimates_permille, f"expected times are wrong by up to {percent(noise.estimates_permille)}"),
        (noise.times_permille, f"times vary by up to {percent(noise.times_permille)}"),
        (how.rest_kelvin is not None, f"units rest {how.rest_kelvin} K before they would be too hot"),
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


def bound_class(found: CoordinationBound) -> str:
    """Return whom the bound holds for."""
    return (
        f"Best known and bound are of {found.parts[0].problem.plan_class}, one chunk at a time on each unit."
    )


def bound_columns(found: CoordinationBound) -> tuple[str, ...]:
    """Return the names of the numbers of `bound_cells`."""
    first = "mean frame" if found.term == "makespan" else "late"
    return (first, "over the best known", "over the bound")


def bound_cells(found: CoordinationBound) -> Iterator[tuple[str, ...]]:
    """Yield a line for each policy, for the best known and for the bound: name and numbers in words."""
    for name, reached in zip(found.policies, found.reached, strict=True):
        distances = (_over(found, reached, base) for base in (found.best, found.bound))
        yield name, _amount(found, reached), *distances
    yield "best known", _amount(found, found.best), "", _over(found, found.best, found.bound)
    yield "bound", _amount(found, found.bound), "", ""


def _amount(found: CoordinationBound, value: int) -> str:
    return microseconds(value / len(found.parts)) if found.term == "makespan" else f"{value:,}"


def _over(found: CoordinationBound, value: int, base: int) -> str:
    if found.term != "makespan":
        return f"{value - base:+,}"
    return f"{100 * (value / base - 1):+.1f} %" if base else "-"


def percentiles(record: Record) -> list[float | None]:
    """Return the median, 90 % and 99 % of the times of frames, or of requests where there are no frames."""
    latencies = frame_latencies_us(record) if record.frames else record.latencies_us()
    return [percentile(latencies, permille) for permille in (500, 900, 990)]
