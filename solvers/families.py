"""What solvers have for single formulations: native algorithms, plans to start from, backends of their own.

A sub-package of this one that is called like a formulation says in its `__init__` what it has, as a `Family`
named FAMILY; nothing else of it is loaded before a function of the `Family` imports it. Formulations of other
packages come with an entry point of the group `gapless.solvers`, or are registered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..formulations.errors import BackendFailedError, InvalidProblemError
from ..formulations.judge import examined
from ..formulations.plan import Plan
from ..formulations.plugins import Companions, PluginError
from ..formulations.problem import Problem
from ..formulations.registry import formulation_names
from .protocol import Backend, Claim, Deadline, SolveOptions, Support
from .sources import StartMode

if TYPE_CHECKING:
    from .samples import Samples

ENTRY_POINT_GROUP = "gapless.solvers"

EXACT_BACKENDS = ("exhaustive", "cpsat", "z3", "pulp")
"""Backends that solve problems of every formulation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usual:
    """What a comparison does when nothing is said: backends, and seconds for each of them.

    Backends that are not installed are left out with a reason.
    """

    names: tuple[str, ...]
    time_limit_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """What random problems of a formulation are drawn from (`Instances.draw`)."""

    sizes: tuple[str, ...]  # names of its sizes: whole numbers
    switches: tuple[str, ...] = ()  # names of what else it takes: yes or no


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What is known before an exact search begins."""

    code: Any = None  # a valid plan by index, or None
    at_least: int | None = None  # a lower bound on the first term of the objective, or None


def best_start(problem: Problem, codes: Iterable[Any]) -> Start:
    """Return the best valid one of some plans by index; without any, nothing is known."""
    rated = [(code, *examined(problem, code)) for code in codes]
    valid = [(numbers.values(problem.objective.terms), code) for code, numbers, broken in rated if not broken]
    return Start(code=min(valid)[1] if valid else None)


Solve = Callable[[Problem, SolveOptions, Support], Claim]
"""A native algorithm: it finds plans for a problem of its formulation, as its support promises."""


@dataclass(frozen=True, slots=True)
class Search:
    """How problems of one formulation are solved."""

    native: Solve  # the algorithm of the backend `native`
    starts: Callable[[Problem, SolveOptions], Iterator[Start]] | None = (
        None  # plans that exact backends start from
    )
    set_bounds: Callable[[Problem], Mapping[Any, int]] | None = None
    """Bounds on the first term by part, where costs depend on the set of used units; others are not known."""
    over_graph: Callable[[Problem, int | None, Deadline], tuple[Problem, Any]] | None = None
    """The chunks of the best plan anywhere in the graph of a network: from a problem and the most down-sets
    to a problem with these chunks as layers, and its plan."""


@dataclass(frozen=True, slots=True)
class Instances:
    """Small problems of one formulation to compare backends on."""

    samples: Callable[[], Samples]  # those that are always the same
    draw: Callable[..., Problem] | None = None  # from sizes, switches and `seed`


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """How backends for one formulation answer problems of another, whose plans theirs are, too."""

    formulation: str  # name of the other one
    problem: Callable[[Problem], Problem]  # from a problem of it to what is asked of the backends
    plan: Callable[[Plan], Plan]  # from a plan of theirs to the same one of the other formulation
    searches: str  # which of its plans these are, in words


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """What there is for the problems of one formulation."""

    support: Support | None = None  # what the backend `native` can do; None: it does not solve them
    search: Callable[[], Search] | None = None  # imports and returns what solves them
    backends: tuple[str, ...] = ()  # names of further backends for them
    classes: Callable[[], Iterable[type[Backend]]] = tuple
    """Imports and returns the classes of these backends."""
    instances: Callable[[], Instances] | None = None  # imports and returns what backends are compared on
    drawn: Drawn | None = None  # what random instances are drawn from
    usual: Usual = Usual(names=EXACT_BACKENDS)  # what a comparison does when nothing is said
    translation: Callable[[], Translation] | None = None
    """Imports and returns how its backends answer problems of another formulation."""


_families = Companions(
    __package__ or "", "FAMILY", ENTRY_POINT_GROUP, what="solver family", like=Family, default=Family()
)


def register_family(formulation: str, family: Family) -> None:
    """Make known in this process what there is for a formulation."""
    _families.register(formulation, family)


def family_of(formulation: str) -> Family:
    """Return what there is for a formulation; an empty `Family` where there is nothing.

    Raises BackendFailedError: that of another package cannot be loaded.
    """
    try:
        return _families.of(formulation)
    except PluginError as error:
        raise BackendFailedError(str(error)) from error


def families() -> dict[str, Family]:
    """Return what there is for each formulation that is known."""
    return {name: family_of(name) for name in formulation_names()}


def search_of(problem: Problem) -> Search | None:
    """Return what solves a problem; None: nothing is known that does so for its formulation alone."""
    search = family_of(problem.formulation.name).search
    return None if search is None else search()


def starts_for(problem: Problem, options: SolveOptions) -> Iterator[Start]:
    """Yield what is known before an exact search of a problem begins; the last one says it all.

    Nothing where the search is to begin with nothing (`SolveOptions.start`).
    """
    search = search_of(problem)
    if search is not None and search.starts is not None and options.start is not StartMode.NONE:
        with suppress(InvalidProblemError):  # numbers that only the native search cannot count with
            yield from search.starts(problem, options)


def takes_start(backend: Backend, problem: Problem) -> bool:
    """Return whether a backend begins a problem with what `SolveOptions.start` says."""
    if not backend.capabilities.starts:
        return False
    search = search_of(problem)
    return search is not None and search.starts is not None


def runs_of(
    problem: Problem, backends: Iterable[Backend], start: StartMode
) -> list[tuple[Backend, StartMode | None]]:
    """Return what a comparison runs: backends, and what each begins with; None: with nothing in any case."""
    modes = (StartMode.NATIVE, StartMode.NONE) if start is StartMode.BOTH else (start,)
    return [
        (worker, mode) for worker in backends for mode in (modes if takes_start(worker, problem) else (None,))
    ]
