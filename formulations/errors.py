"""Every error that gapless raises on purpose, under one root.

Infeasible problems, reached limits and plans that were not found are *data* (`SolveStatus`),
not errors. A message says what is wrong, where, which value, and what to do next.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from .printing import printable

if TYPE_CHECKING:
    from .plan import Plan
    from .scores import Violation


class GaplessError(Exception):
    """Root of all errors that gapless raises on purpose; `str()` is printable, whatever a message quotes."""

    def __str__(self) -> str:
        return printable(super().__str__())


class InvalidInputError(GaplessError, ValueError):
    """Input that cannot be used as it is.

    Parameters
    ----------
    message
        What is wrong, and where.
    problems
        Every single defect that was found; `str()` lists all of them.
    """

    def __init__(self, message: str, problems: Iterable[str] = ()) -> None:
        self.message = message
        self.problems = tuple(problems)
        super().__init__(message)

    def __str__(self) -> str:
        return printable(self.message + "".join(f"\n  - {problem}" for problem in self.problems))


class InvalidModelError(InvalidInputError):
    """A model file that cannot be planned or run."""


class OpenShapesError(InvalidModelError):
    """A model with inputs whose shapes are not settled; each is one of the defects."""


class InvalidProblemError(InvalidInputError):
    """A problem, platform, network, cost table or rule that contradicts itself."""


class InvalidPlanError(InvalidInputError):
    """A plan that does not belong to what it is meant for."""


class MalformedPlanError(InvalidPlanError):
    """A plan that is not even well formed for its problem, so that it has no numbers.

    Parameters
    ----------
    plan
        The plan.
    violations
        What it breaks, so that it has none.
    """

    def __init__(self, plan: Plan, violations: Iterable[Violation]) -> None:
        self.plan, self.violations = plan, tuple(violations)
        problems = [f"{violation.rule}: {violation.message}" for violation in self.violations]
        super().__init__(f"plan [{plan}] is not well formed:", problems)

    def __reduce__(self) -> tuple[type[MalformedPlanError], tuple[Plan, tuple[Violation, ...]]]:
        # Errors are made again from their message alone otherwise.
        return type(self), (self.plan, self.violations)


class SchemaVersionError(InvalidInputError):
    """A file of another kind, or of a version that this gapless cannot read."""


class ExpressionError(GaplessError, TypeError):
    """A rule that uses Python where an expression is needed (`if`, `and`, `or`, `not`)."""


class BackendError(GaplessError):
    """A backend that cannot answer."""


class UnknownBackendError(BackendError, InvalidInputError):
    """A backend name that the registry does not know."""


class BackendUnavailableError(BackendError):
    """A backend whose solver is not installed or does not work here."""


class UnsupportedFeatureError(BackendError):
    """A problem that uses features which the backend does not handle.

    Parameters
    ----------
    message
        What was asked of which backend, and which backends could do it.
    missing
        Names of the features that the backend lacks.
    """

    def __init__(self, message: str, missing: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.missing = frozenset(missing)


class BackendFailedError(BackendError):
    """A backend that crashed, was killed or broke its protocol."""


class BackendDisagreementError(BackendError):
    """A backend whose claim the judge refutes: a bug, never a status."""


class ProfilingError(GaplessError):
    """A measurement that could not be taken."""


class LayerNotRunnableError(ProfilingError):
    """A layer that no unit of the platform can run."""


class NoisyMeasurementError(ProfilingError):
    """Measurements so unsteady that a plan made from them would mean nothing."""


class ExecutionError(GaplessError):
    """A plan that could not be executed."""


class EngineUnavailableError(ExecutionError):
    """An engine that is not installed, or does not work here."""


class ConversionError(ExecutionError):
    """A piece of a model that an engine could not translate into its own form.

    Parameters
    ----------
    message
        Which pieces, and why.
    problems
        Why, by the names of the pieces; empty where that is not known of each. The other pieces of the same
        call could be translated.
    """

    def __init__(self, message: str, problems: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.problems = dict(problems or {})


class PlacementError(ExecutionError):
    """An engine that granted something else (backend, threads, cores) than was asked."""


class UnitLostError(ExecutionError):
    """A worker that died, hung or failed while a plan was running; the message names the lost request."""


class NothingLeftError(ExecutionError):
    """A server has lost all its units, and was not to wait longer for one to come back."""


class RefusedRequestError(ExecutionError):
    """A request that a coordinator does not take: it is stopping, or no unit that is there can run it."""


class QueueFullError(RefusedRequestError):
    """A request that is not taken because as many as are allowed wait for their answers."""


class DroppedRequestError(ExecutionError):
    """A request that was dropped because it could not meet its deadline any more."""


class OutputMismatchError(ExecutionError):
    """A plan whose numbers differ from those of the whole model; the message names the first wrong chunk."""


class UnfitNumbersError(ExecutionError, InvalidInputError):
    """Numbers of a request that an engine cannot compute with, or not rightly; it names the tensor."""

    def __init__(self, message: str) -> None:
        InvalidInputError.__init__(self, message)


class StoreError(ExecutionError):
    """A store of measurements, or a cache, that cannot be used (locked, full, damaged)."""


class NoStoreError(StoreError, InvalidInputError):
    """A file that is named as a store of measurements and is none, or of another version."""

    def __init__(self, message: str) -> None:
        InvalidInputError.__init__(self, message)


ENDING = (UnitLostError, StoreError)
"""Errors that end whatever is measured: they say nothing of whether a unit can run it."""


class BoardError(ExecutionError):
    """A board that cannot be reached or used, or whose connection was lost; it says at which step."""
