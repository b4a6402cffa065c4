"""What a formulation is: everything that gapless has to know about one kind of problem.

Nothing outside the packages of a formulation knows which formulations there are. The judge, the session, the
exact search, comparisons, explanations, files and reports work through this class alone, so a new kind of
problem is one sub-package here, and where it has them one of native algorithms and one of views.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, Generic, ParamSpec, TypeVar

from .demands import Demand
from .limits import LIMIT_NAMES, OF_REQUESTS
from .network import MAX_LAYERS
from .plan import Plan
from .terms import PlanNumbers, Quantities, QuantityInfo, TermInfo

if TYPE_CHECKING:
    from .model import Encoded
    from .network import Network
    from .operation import Operation
    from .problem import Problem
    from .rules import RuleFunction
    from .scores import Violation

TablesT = TypeVar("TablesT")
"""The integer tables of a problem."""

CodeT = TypeVar("CodeT")
"""A plan by index: hashable, and what searches work on."""


ResultT = TypeVar("ResultT")
Rest = ParamSpec("Rest")


def of_tables(
    function: Callable[Concatenate[Any, Rest], ResultT],
) -> Callable[Concatenate[Any, Problem, Rest], ResultT]:
    """Return the method of a formulation that asks a function of the tables of a problem."""

    def method(formulation: Any, problem: Problem, /, *args: Rest.args, **more: Rest.kwargs) -> ResultT:
        return function(problem.tables, *args, **more)

    method.__doc__ = function.__doc__
    return method


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How far two plans are apart, where a formulation can say so.

    Attributes
    ----------
    between
        From two plans to their distance; different plans have at least 1.
    rule
        From a plan and a least distance to the rule that a plan is at least so far from it.
    settle
        From a plan to the one that stands for all that are the same to people; those are measured.
    settling
        Rules of which all hold for such plans alone; none where every plan stands for itself.
    """

    between: Callable[[Plan, Plan], int]
    rule: Callable[[Plan, int], RuleFunction]
    settle: Callable[[Problem, Plan], Plan] = lambda problem, plan: plan
    settling: Callable[[Problem], tuple[RuleFunction, ...]] = lambda problem: ()


class Formulation(ABC, Generic[TablesT, CodeT]):
    """One kind of problem: what is asked, which plans there are, what they are worth, how to encode them.

    Objects have no state. A formulation says what the abstract methods ask; the others have defaults that
    hold where nothing is special. A method that only asks a function is one line:
    `tables = staticmethod(build_tables)`, `codes = of_tables(all_plans)`.
    """

    name: ClassVar[str]
    """Its name in lower case with underscores: that of its packages."""

    label: ClassVar[str]
    """What people call its problems."""

    data_key: ClassVar[str | None] = None
    """Under which key its own data stands in problem files; None: it has none of its own."""

    data_type: ClassVar[type | None] = None
    """A frozen dataclass with `data_key: ClassVar[str]`, the same key; None: no data."""

    terms: ClassVar[Mapping[str, TermInfo]]
    """What can be minimised; the first one is what is asked where only feasibility counts."""

    tie_break: ClassVar[tuple[str, ...]] = ()
    """Terms that order plans with equal objectives, before `key` does."""

    quantities: ClassVar[Mapping[str, QuantityInfo]]
    """What rules can speak about."""

    limits: ClassVar[tuple[str, ...]] = tuple(name for name in LIMIT_NAMES if name not in OF_REQUESTS)
    """The filters (`Limits`) that its plans can be asked to pass; of the numbers of a plan they read
    `period_us`, `gapness_us`, `idle_permille` and `busy_us`."""

    unmodelled: ClassVar[frozenset[str]] = frozenset()
    """Quantities of which models and searches know lower bounds only. What limits (`max_` and the name) and
    rules ask of them, finished plans are asked, as for opaque rules (`Problem.opaque_demands`)."""

    features: ClassVar[frozenset[str]] = frozenset()
    """What its problems can ask of a backend, beyond `Feature`."""

    co_run_costs: ClassVar[bool] = False
    """Whether costs can depend on the units that a plan uses (`Problem.co_run_costs`)."""

    most_layers: ClassVar[int] = MAX_LAYERS
    """Most layers of one of its networks."""

    one_network: ClassVar[bool] = False
    """Whether its problems have exactly one network."""

    recurrent: ClassVar[bool] = False
    """Whether its plans keep what a request leaves behind for the next one (`Network.states`)."""

    difference: ClassVar[Difference | None] = None
    """How far plans are apart, if that is defined."""

    operation: ClassVar[Operation | None] = None
    """How its plans run; None: they can be found and judged only."""

    correctable: ClassVar[bool] = False
    """Whether costs can be corrected by what its plans took: its tables are a `Chain`."""

    incomplete: ClassVar[str] = "every layer can run somewhere, but no plan covers all layers"
    """Why no plan of its class is valid where the table leaves no layer out, in words."""

    @cached_property
    def fields(self) -> Mapping[str, str]:
        """From the names of the terms to those with their unit, as scores call them."""
        return MappingProxyType({name: info.field for name, info in self.terms.items()})

    # What is asked

    def hint_on_limits(self, names: Sequence[str]) -> str:
        """Return what to do where limits are wanted that mean nothing here; empty: nothing is known."""
        return ""

    def defects(self, problem: Problem) -> Iterator[str]:
        """Yield what is wrong with a problem, as far as this formulation is concerned."""
        return iter(())

    def unknown(self, problem: Problem, /) -> Mapping[str, str]:
        """Return the terms that the data of a problem do not tell, each with what is missing."""
        return {}

    def needs(self, problem: Problem) -> frozenset[str]:
        """Return which of its `features` a problem asks for."""
        return frozenset()

    @abstractmethod
    def tables(self, problem: Problem, /) -> TablesT:
        """Return the integer tables of a problem; `Problem.tables` keeps them."""

    @abstractmethod
    def view(self, problem: Problem, /) -> Any:
        """Return what rule functions are given: an object whose methods return expressions."""

    def variables(self, problem: Problem) -> Quantities:
        """Return the quantities of a problem as variables."""
        return Quantities(self.quantities, problem.tables)

    def placed(self, problem: Problem) -> tuple[Network, ...]:
        """Return the networks that plans place."""
        return problem.networks

    def arrivals(self, problem: Problem) -> tuple[str, ...]:
        """Return the names of the requests that come, in their order; none for endless streams."""
        return ()

    def demands(self, problem: Problem) -> list[Demand]:
        """Return what its own data demands that an explanation may take away."""
        return []

    # Plans, and what they are worth

    @abstractmethod
    def code(self, problem: Problem, plan: Plan, /) -> CodeT:
        """Return a plan by index.

        Raises
        ------
        MalformedPlanError
            It has no numbers: unknown names, missing layers, chunks that cannot be; with all of them.
        """

    @abstractmethod
    def plan(self, problem: Problem, code: CodeT, /) -> Plan:
        """Return a plan by name: the way back from `code`."""

    @abstractmethod
    def numbers(self, problem: Problem, code: CodeT, /) -> PlanNumbers:
        """Return the numbers of a plan: the only definition of what it is worth."""

    @abstractmethod
    def broken(self, problem: Problem, code: CodeT, numbers: PlanNumbers) -> Iterator[Violation]:
        """Yield which facts of the device and of its own data a plan breaks; limits and rules apart."""

    @abstractmethod
    def columns(self, numbers: PlanNumbers) -> Mapping[str, tuple[int | None, ...]]:
        """Return the numbers by unit of the platform (None: not used), and others that come as lists."""

    def labels(self, problem: Problem, column: str) -> tuple[str, ...]:
        """Return what the numbers of a column are about."""
        return problem.platform.unit_names

    def other_units(self, problem: Problem, /) -> Iterator[tuple[str, Problem]]:
        """Yield other sets of units that an explanation asks about: in words, and the problem with it."""
        return iter(())

    def rate(self, numbers: PlanNumbers) -> float | None:
        """Return how many requests a second a plan serves, if that means something."""
        return None

    @abstractmethod
    def key(self, problem: Problem, code: CodeT) -> tuple[int, ...]:
        """Return what orders plans whose terms are equal: the canonical order."""

    # Spaces and models

    @abstractmethod
    def plan_class(self, problem: Problem) -> str:
        """Return which plans there are: what proofs and bounds are about.

        It stands behind "among", in every answer: "plans with at most one chunk per unit". What the problem
        itself asks of plans (limits, rules, capacities) is not repeated.
        """

    def outside(self, problem: Problem) -> str:
        """Return in a sentence what other plans there may be, and how to ask for them; empty: none."""
        return ""

    def wider(self, problem: Problem) -> tuple[str, Problem] | None:
        """Return by which option a wider class of plans is asked for, and its problem; None: there is none.

        Beside an answer people are told what that class would bring.
        """
        return None

    @abstractmethod
    def count(self, problem: Problem, /) -> int:
        """Return an upper bound on the number of well-formed plans."""

    @abstractmethod
    def codes(self, problem: Problem, /) -> Iterator[CodeT]:
        """Yield every well-formed plan: what the oracle walks."""

    def neighbours(self, problem: Problem, code: CodeT, /) -> Iterator[CodeT]:
        """Yield well-formed plans that are a small change away: what repairs try; the default knows none."""
        return iter(())

    @abstractmethod
    def encode(
        self, problem: Problem, *, top: int = 1, relaxation: bool = False, known: CodeT | None = None
    ) -> Encoded[CodeT]:
        """Return a problem as a model for exact solvers.

        Parameters
        ----------
        problem
            One table of costs: no `co_run_costs`.
        top
            How many plans are wanted.
        relaxation
            Whether the solver lives from its linear relaxation.
        known
            A valid plan, for bounds and as a start.
        """
