"""Numbers and states in words that a newcomer understands."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..formulations.problem import Problem
from ..formulations.registry import formulation_named, formulation_names
from ..formulations.scores import Score
from ..formulations.terms import Dimension, Objective, TermInfo
from ..formulations.tiers import TOLERANCE, tiers
from ..solvers.protocol import SolveStatus, StopReason
from ..solvers.result import SolveResult
from ..solvers.sources import Source, StartMode

if TYPE_CHECKING:  # it opens models
    from ..api.branching import Branching

Terms = Mapping[str, TermInfo]
"""Objective terms of a formulation by name (`Formulation.terms`)."""

WELL_PREDICTED = 10.0
"""Percent by which a prediction may be off."""

MOST_NAMED = 3
"""Layers, units or demands that a sentence names; the others are counted."""

_STOPPED_BY = {
    StopReason.COMPLETE: "the search was finished",
    StopReason.TIME_LIMIT: "stopped by the time limit",
    StopReason.MEMORY_LIMIT: "stopped by the memory limit",
    StopReason.REJECTION_LIMIT: "stopped because opaque rules refused too many plans",
    StopReason.SPACE_LIMIT: "the space of plans is larger than this backend is willing to walk",
    StopReason.INTERRUPTED: "stopped by you",
}

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def all_terms() -> Terms:
    """Return the terms of all formulations, where it is not known which one something is about."""
    return ChainMap(*(dict(formulation_named(name).terms) for name in formulation_names()))


def capital(text: str) -> str:
    """Return a text as the beginning of a sentence; the case of its other letters stays."""
    return text[:1].upper() + text[1:]


def millis(time_us: int | None) -> str:
    """Return microseconds as exact milliseconds."""
    return "-" if time_us is None else f"{time_us // 1000:,}.{time_us % 1000:03d} ms"


def microseconds(time_us: float | None) -> str:
    """Return a measured time: three significant places are more than it deserves."""
    if time_us is None:
        return "-"
    return f"{time_us / 1000:,.2f} ms" if time_us >= 1000 else f"{time_us:,.1f} us"


def interval_words(least_us: float, most_us: float) -> str:
    """Return the interval in which measured times lie; a unit that both ends have is said once."""
    least, most = microseconds(least_us), microseconds(most_us)
    number, _, unit = least.partition(" ")
    return f"{number if most.endswith(f' {unit}') else least} to {most}"


def size(count: int | None) -> str:
    """Return a number of bytes."""
    if count is None:
        return "-"
    value, unit = float(count), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:.0f} B" if unit == 0 else f"{value:,.1f} {_UNITS[unit]}"


def percent(permille: int | None) -> str:
    """Return a share."""
    return "-" if permille is None else f"{permille / 10:.1f} %"


def tier_words(values: Sequence[float | None]) -> tuple[str, ...]:
    """Return the tier of each predicted value; nothing where every value is a tier of its own."""
    found = iter(tiers([value for value in values if value is not None]))
    words = tuple("-" if value is None else str(next(found)) for value in values)
    return words if len(set(words) - {"-"}) < sum(word != "-" for word in words) else ()


def tier_legend(name: str) -> str:
    """Return what tiers are, of which value."""
    within = f"{100 * TOLERANCE:.0f} %"
    return f"plans whose {name} is within {within}, which predictions do not tell apart"


def share(part: float, whole: float) -> str:
    """Return a part of a whole in percent; all shares of all tables and pages are rounded here."""
    return percent(round(1000 * part / whole) if whole else None)


def seconds(value: float) -> str:
    """Return a run time."""
    return f"{1000 * value:,.1f} ms" if value < 1 else f"{value:,.2f} s"


def span_seconds(time_us: int) -> str:
    """Return a time of a simulation in seconds: "0.042 s", "118.3 s"."""
    value = time_us / 1e6
    return f"{value:.3f} s" if value < 10 else f"{value:,.1f} s"


def interval(time_ns: int | None) -> str:
    """Return nanoseconds as milliseconds, with the seven digits to which rates are told apart."""
    if time_ns is None:
        return "-"
    places = max(0, 7 - len(str(time_ns // 10**6)))
    return f"{time_ns / 1e6:,.{places}f} ms"


def amount(dimension: Dimension, value: int | None) -> str:
    """Return a number with its unit."""
    match dimension:
        case Dimension.BYTES:
            return size(value)
        case Dimension.PERMILLE:
            return percent(value)
        case Dimension.COUNT:
            return "-" if value is None else f"{value:,}"
        case Dimension.MICROSECONDS:
            return millis(value)
        case Dimension.NANOSECONDS:
            return interval(value)
        case Dimension.NANOJOULES:
            return "-" if value is None else f"{value / 1e6:,.2f} mJ"


def term_name(terms: Terms, term: str) -> str:
    """Return what an objective term is called."""
    return terms[term].label


def term_value(terms: Terms, term: str, value: int | None) -> str:
    """Return a value of an objective term with its unit."""
    return amount(terms[term].dimension, value)


def other_words(terms: Terms, option: str, best: Score, other: Score, term: str) -> str:
    """Return what another class of plans brings of the first term; empty: nothing that is worth a line."""
    now, then = best.value(term), other.value(term)
    if not now or abs(then - now) * 1000 <= now * 5:
        return ""
    value, change = term_value(terms, term, then), 100 * abs(now - then) / now
    return f"{option}: {term_name(terms, term)} {value}, {change:.0f} % {'less' if then < now else 'more'}"


def slots_words(slots: int, period_us: float, best_us: int | None) -> list[str]:
    """Return what a plan without the limit does with a number of task slots, if it is faster than an answer.

    `best_us`: the period of the answer; None: there is none.
    """
    if best_us is not None and period_us * 1000 >= best_us * 995:
        return []
    less = "" if best_us is None else f", {100 * (best_us - period_us) / best_us:.0f} % less"
    return [
        f"The limit is about plans at their least period. A plan that needs more has a period of "
        f"{millis(round(period_us))} with --task-slots {slots} of run and simulate{less}."
    ]


def observed(*, simulated: bool) -> str:
    """Return what the numbers of an execution are: no device ran where a cost table was played."""
    return "simulated" if simulated else "measured"


def simulated_words(device: str) -> str:
    """Return that no device ran: a cost table was played."""
    return f"SIMULATED on a cost table, no device ran: {device.removeprefix('simulated ')}"


def listed(words: Sequence[str]) -> str:
    """Return words as a list in a sentence; of many, the first few and how many more."""
    if len(words) > MOST_NAMED:
        return f"{', '.join(words[:MOST_NAMED])} and {len(words) - MOST_NAMED} more"
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def layers_words(start: int, stop: int) -> str:
    """Return the numbers of the layers from `start` until before `stop`; of one layer, its own."""
    return str(start) if stop == start + 1 else f"{start}-{stop - 1}"


def counted(count: int, noun: str) -> str:
    """Return a number with its noun: "1 device", "3 devices", "1,001 sessions"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def branching_words(found: Branching) -> str:
    """Return what branches a network has, in words."""
    if found.is_chain:
        return "a chain: its layers have one order"
    sets = f"more than {found.counted_to:,}" if found.down_sets is None else f"{found.down_sets:,}"
    return (
        f"up to {found.width} layers side by side, {found.branches} branches of at most "
        f"{counted(found.longest_branch, 'layer')}, {sets} down-sets (what can lie before a cut)"
    )


def part_of(part: int, whole: int) -> str:
    """Return a share in percent; small ones with as many places as they need."""
    value = 100 * part / whole
    if value >= 10_000:
        return f"{value / 100:,.0f} times"
    return f"{value:,.1f} %" if value >= 0.1 else f"{value:.2g} %"


def gap(share: float | None) -> str:
    """Return the gap between an objective and a bound."""
    return "-" if share is None else f"{100 * share:.2f} %"


def asked_words(problem: Problem) -> tuple[str, str]:
    """Return the networks of a problem, and what is asked of them."""
    platform, networks = problem.platform, ", ".join(network.name for network in problem.networks)
    layers = sum(len(network.layers) for network in problem.networks)
    requests = problem.formulation.arrivals(problem)
    counts = [counted(len(requests), "request")] if requests else []
    counts += [counted(layers, "layer"), counted(len(platform.units), "unit")]
    words = f" on {platform.name}: {', '.join(counts)}; "
    return networks, words + objective_words(problem.formulation.terms, problem.objective)


def objective_words(terms: Terms, objective: Objective) -> str:
    """Return what is minimised."""
    words = ", then ".join(term_name(terms, term) for term in objective.terms)
    if objective.period_slack_permille is not None:
        words += f", among plans within {percent(objective.period_slack_permille)} of the least period"
    if objective.present_by is not None:
        words += f", shown by {term_name(terms, objective.present_by)}"
    return f"least {words}"


def stop_words(stop: StopReason) -> str:
    """Return why a backend stopped."""
    return _STOPPED_BY[stop]


def start_words(start: StartMode | None, start_s: float) -> str:
    """Return what a search began with, and the seconds of its time that making that took; "-": nothing."""
    return f"{start}, {seconds(start_s)}" if start is StartMode.NATIVE else "-"


SOURCES = {Source.OWN: "itself", Source.START: "the start"}
"""Who found a plan or proved a bound, in tables."""


def source_words(result: SolveResult) -> str:
    """Return in a sentence what came from the start of an exact search; empty where nothing did."""
    handed = [
        what
        for what, source in (("plan", result.plan_source), ("bound", result.bound_source))
        if source is Source.START
    ]
    if not handed:
        return ""
    return (
        f"The {' and the '.join(handed)} came from native algorithms before {result.backend} began "
        f"(--start), and {result.backend} found none better."
    )


def status_words(terms: Terms, result: SolveResult) -> str:
    """Return what is known about the answer; a proof says among which plans."""
    term = result.asked.terms[0]
    stop = stop_words(result.stop)
    match result.status:
        case SolveStatus.OPTIMAL:
            words = _proven_words(terms, result)
            none = "no further one is so different" if result.distance > 1 else "there are no further ones"
            return f"{words}; {none}" if result.exhausted else words
        case SolveStatus.FEASIBLE:
            words = f"a valid plan, not proved to be the best one: {stop}"
            if result.bound is None:
                return f"{words}; nothing is known about how much better a plan can be"
            least = term_value(terms, term, result.bound)
            words += f"; no valid one has less {term_name(terms, term)} than {least}"
            return f"{words} among {result.plan_class}"
        case SolveStatus.INFEASIBLE:
            return f"proved: none keeps everything that is asked among {result.plan_class}"
        case SolveStatus.NO_SOLUTION:
            return f"no plan was found, and nothing is proved: {stop}"


def _proven_words(terms: Terms, result: SolveResult) -> str:
    if len(result.candidates) < 2:
        return f"proved: no valid one is better among {result.plan_class}"
    if result.proven == len(result.candidates):
        words = f"proved: these {result.proven} plans are the best ones"
        if result.distance > 1:
            words += f" with at least {result.distance} layers elsewhere than in all before"
        shown = result.asked.present_by
        words += ", in this order" if shown is None else f", shown by {term_name(terms, shown)}"
        return f"{words}, among {result.plan_class}"
    best = "the first plan is" if result.proven == 1 else f"the first {result.proven} plans are"
    words = f"proved: {best} the best among {result.plan_class}"
    return f"{words}; the others are valid, {stop_words(result.stop)}"
