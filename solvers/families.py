"""What solvers have for single formulations: native algorithms, plans to start from, backends of their own.

A sub-package of this one that is called like a formulation says in its `__init__` what it has, as a `Family`
named FAMILY; nothing else of it is loaded before it is used. Formulations of other packages come with an
entry point of the group `gapless.solvers`, or are registered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from ..formulations.errors import BackendFailedError, InvalidProblemError
from ..formulations.plugins import Companions, PluginError
from ..formulations.problem import Problem
from ..formulations.registry import formulation_names
from .protocol import Backend, Claim, SolveOptions, Support
from .sources import StartMode

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
    """Random problems of a formulation, by size and seed.

    Attributes
    ----------
    home
        What draws one, as "module:function" of the sub-package, from its sizes, its switches and `seed`.
    sizes
        Names of its sizes: whole numbers.
    switches
        Names of what else it takes: yes or no.
    """

    home: str
    sizes: tuple[str, ...]
    switches: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What is known before an exact search begins.

    Attributes
    ----------
    code
        A valid plan by index, or None.
    at_least
        A lower bound on the first term of the objective, or None.
    """

    code: Any = None
    at_least: int | None = None


Solve = Callable[[Problem, SolveOptions, Support], Claim]
"""A native algorithm: it finds plans for a problem of its formulation, as its support promises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """What there is for the problems of one formulation.

    Attributes
    ----------
    support
        What the backend `native` can do; None: it does not solve them.
    native
        Its algorithm, as "module:function" of the sub-package (a `Solve`).
    starts
        What finds plans for exact backends to start from, likewise: from problem and options to an iterator
        of `Start`.
    set_bounds
        What bounds the first term for each part of a problem whose costs depend on the set of used units,
        likewise: from a problem to bounds by part; of a part that is not there, nothing is known.
    over_graph
        What finds the chunks of the best plan anywhere in the graph of a network, likewise: from a problem,
        the most down-sets or None, and a `Deadline` to a problem with these chunks as layers, and its plan.
    backends
        Further backends for them, by name: "module:Class".
    samples
        What returns small instances to compare backends on, likewise (`samples.Samples`).
    drawn
        Random problems to compare backends on.
    usual
        What a comparison does when nothing is said.
    package
        Where the modules are.
    """

    support: Support | None = None
    native: str | None = None
    starts: str | None = None
    set_bounds: str | None = None
    over_graph: str | None = None
    backends: Mapping[str, str] = field(default_factory=dict)
    samples: str | None = None
    drawn: Drawn | None = None
    usual: Usual = Usual(names=EXACT_BACKENDS)
    package: str = ""

    def load(self, home: str) -> Any:
        """Return what stands at "module:name" of its package."""
        module, _, name = home.partition(":")
        return getattr(import_module(f".{module}", self.package), name)


_families = Companions(
    __package__ or "", "FAMILY", ENTRY_POINT_GROUP, what="solver family", like=Family, default=Family()
)


def register_family(formulation: str, family: Family) -> None:
    """Make known in this process what there is for a formulation."""
    _families.register(formulation, family)


def family_of(formulation: str) -> Family:
    """Return what there is for a formulation; an empty `Family` where there is nothing.

    Raises
    ------
    BackendFailedError
        That of another package cannot be loaded.
    """
    try:
        return _families.of(formulation)
    except PluginError as error:
        raise BackendFailedError(str(error)) from error


def families() -> dict[str, Family]:
    """Return what there is for each formulation that is known."""
    return {name: family_of(name) for name in formulation_names()}


def starts_for(problem: Problem, options: SolveOptions) -> Iterator[Start]:
    """Yield what is known before an exact search of a problem begins; the last one says it all.

    Nothing where the search is to begin with nothing (`SolveOptions.start`).
    """
    family = family_of(problem.formulation.name)
    if family.starts is not None and options.start is not StartMode.NONE:
        with suppress(InvalidProblemError):  # numbers that only the native search cannot count with
            yield from family.load(family.starts)(problem, options)


def takes_start(backend: Backend, problem: Problem) -> bool:
    """Return whether a backend begins a problem with what `SolveOptions.start` says."""
    return backend.capabilities.starts and family_of(problem.formulation.name).starts is not None


def runs_of(
    problem: Problem, backends: Iterable[Backend], start: StartMode
) -> list[tuple[Backend, StartMode | None]]:
    """Return what a comparison runs: backends, and what each begins with; None: with nothing in any case."""
    modes = (StartMode.NATIVE, StartMode.NONE) if start is StartMode.BOTH else (start,)
    return [
        (worker, mode) for worker in backends for mode in (modes if takes_start(worker, problem) else (None,))
    ]
