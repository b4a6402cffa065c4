"""Numbers and states in words that a newcomer understands."""

from __future__ import annotations

from ..formulations.objective import Objective
from ..solvers.protocol import SolveStatus, StopReason
from ..solvers.result import SolveResult

_TERM_NAMES = {
    "paper_gapness": "paper gapness",
    "peak_memory": "peak memory",
    "idle": "idle share",
}

_STOPPED_BY = {
    StopReason.COMPLETE: "the search was finished",
    StopReason.TIME_LIMIT: "stopped by the time limit",
    StopReason.MEMORY_LIMIT: "stopped by the memory limit",
    StopReason.REJECTION_LIMIT: "stopped because opaque rules refused too many plans",
    StopReason.SPACE_LIMIT: "the space of plans is larger than this backend is willing to walk",
    StopReason.INTERRUPTED: "stopped by you",
}

STATUS_STYLE = {
    SolveStatus.OPTIMAL: "bold green",
    SolveStatus.FEASIBLE: "bold yellow",
    SolveStatus.INFEASIBLE: "bold red",
    SolveStatus.NO_SOLUTION: "bold magenta",
}

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


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


def seconds(value: float) -> str:
    """Return a run time."""
    return f"{1000 * value:,.1f} ms" if value < 1 else f"{value:,.2f} s"


def term_name(term: str) -> str:
    """Return what an objective term is called."""
    return _TERM_NAMES.get(term, str(term))


def term_value(term: str, value: int | None) -> str:
    """Return a value of an objective term with its unit."""
    if term == "peak_memory":
        return size(value)
    if term in ("contention", "displacement"):
        return "-" if value is None else f"{value:,}"
    return percent(value) if term == "idle" else millis(value)


def gap(result: SolveResult) -> str:
    """Return the gap between the objective and its bound."""
    return "-" if result.gap is None else f"{100 * result.gap:.2f} %"


def objective_words(objective: Objective) -> str:
    """Return what is minimised."""
    words = ", then ".join(map(term_name, objective.terms))
    if objective.period_slack_permille is not None:
        words += f", among plans within {percent(objective.period_slack_permille)} of the least period"
    if objective.present_by is not None:
        words += f", shown by {term_name(objective.present_by)}"
    return f"least {words}"


def stop_words(stop: StopReason) -> str:
    """Return why a backend stopped."""
    return _STOPPED_BY[stop]


def status_words(result: SolveResult) -> str:
    """Return what is known about the answer."""
    term = result.asked.terms[0]
    stop = stop_words(result.stop)
    match result.status:
        case SolveStatus.OPTIMAL:
            words = "proved: no plan is better" if len(result.candidates) < 2 else _proven_words(result)
            none = "no further plan is so different" if result.distance > 1 else "there are no further plans"
            return f"{words}; {none}" if result.exhausted else words
        case SolveStatus.FEASIBLE:
            words = f"a valid plan, not proved to be the best one: {stop}"
            if result.bound is None:
                return f"{words}; nothing is known about how much better a plan can be"
            return f"{words}; no plan has less {term_name(term)} than {term_value(term, result.bound)}"
        case SolveStatus.INFEASIBLE:
            return "proved: no plan keeps everything that is asked"
        case SolveStatus.NO_SOLUTION:
            return f"no plan was found, and nothing is proved: {stop}"


def _proven_words(result: SolveResult) -> str:
    if result.proven == len(result.candidates):
        words = f"proved: these {result.proven} plans are the best ones"
        if result.distance > 1:
            words += f" with at least {result.distance} layers elsewhere than in all before"
        shown = result.asked.present_by
        return f"{words}, in this order" if shown is None else f"{words}, shown by {term_name(shown)}"
    best = "the first plan is" if result.proven == 1 else f"the first {result.proven} plans are"
    return f"proved: {best} the best; the others are valid, {stop_words(result.stop)}"
