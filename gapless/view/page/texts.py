"""Texts of the page: what terms mean, and names made harmless."""

from __future__ import annotations

import re
import unicodedata

_SHOWN = "\N{REPLACEMENT CHARACTER}"

_KEPT = "\n\t"

GLOSSARY = (
    (
        "layer, cut, chunk",
        "A network is a chain of layers. A cut parts it; a chunk is what lies between two cuts.",
    ),
    ("unit", "A processing unit of the device with its thread setting: a cluster of cores, a GPU, an NPU."),
    ("request", "One inference: of one network, or of each of several that run one after the other."),
    (
        "workload",
        "Requests of different networks that share the units; a plan fixes their order and their cuts.",
    ),
    ("period", "Time between two results of a stream: the largest busy time of a unit."),
    (
        "unqueued latency",
        "Time of one request that is on its way alone, from its entry to its exit: nothing waits.",
    ),
    (
        "latency with full slots",
        "Time of one request while the pipeline is full, as when a period is measured: it waits for its turn "
        "at every unit, so it is longer.",
    ),
    ("latency from arrival", "Time of one request of a batch, from its arrival to its exit."),
    ("makespan", "End of the last request of a finite workload."),
    ("bubble", "Idle time of a unit between its first and its last work."),
    ("gapness", "Largest minus smallest busy time of the units in use."),
    (
        "busy share",
        "How much of the period (of a batch: of the makespan) a unit works, with what slowdown adds to it.",
    ),
    (
        "utilisation",
        "Sum of the busy shares over the number of units that can work at once: of units that share cores "
        "only one counts.",
    ),
    ("slowdown, lost time", "How much longer a chunk takes because of what runs beside it."),
    (
        "contention",
        "Networks that press hard on the shared memory are of high contention; when two of them run at once, "
        "both get slower.",
    ),
    (
        "bound, gap",
        "Limit, proved by a solver, that no plan of its class can beat; how far the plan is from it.",
    ),
    (
        "exact, heuristic",
        "A backend that can prove that no plan of its class is better; one that only looks for good plans.",
    ),
    ("receipt", "What was asked of an engine (backend, threads, cores), and what it granted."),
    ("baseline", "What a plan has to beat: each unit alone, all cores, replicas."),
    ("emulated", "Slowed by a quota of processor time, to stand for a slower unit."),
)
"""Terms that the page uses, in words."""


def visible(text: str) -> str:
    """Return a text in which control characters and marks of writing direction show, and do nothing.

    Names come from model files of strangers: a mark that turns the direction of writing could make one
    name look like another.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        _SHOWN if unicodedata.category(letter) in ("Cc", "Cf", "Cs") and letter not in _KEPT else letter
        for letter in text
    )


_NUMBER = re.compile(r"(?<=\d) (?=(?:%|ms|us|s|B|KiB|MiB|GiB|TiB)(?![\w]))")


def prose(text: str) -> str:
    """Return a text of sentences in which a number and its unit stay on one line."""
    return _NUMBER.sub("\N{NO-BREAK SPACE}", visible(text))


MOST_LETTERS = 240
"""Of a plan in a table; the plan for a workload of hundreds of requests fills pages."""


def clipped(text: str, most: int = MOST_LETTERS) -> str:
    """Return the beginning of a long text."""
    return text if len(text) <= most else f"{text[: most - 4].rstrip()} ..."
