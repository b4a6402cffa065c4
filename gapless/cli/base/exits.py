"""Exit codes of the command line."""

from __future__ import annotations

from collections.abc import Collection
from enum import IntEnum
from typing import TYPE_CHECKING

from typer import Abort

from ...formulations.errors import (
    BackendDisagreementError,
    BackendError,
    BackendUnavailableError,
    ExpressionError,
    GaplessError,
    InvalidInputError,
    NothingLeftError,
    OutputMismatchError,
    UnsupportedFeatureError,
)

if TYPE_CHECKING:
    from ...api.comparison import Comparison
    from ...solvers.pareto import ParetoFront
    from ...solvers.result import SolveResult


class ExitCode(IntEnum):
    """What the caller of a command learns from its exit code.

    OK
        There is an answer.
    INTERNAL
        A bug in gapless.
    USAGE
        Bad input or usage.
    INFEASIBLE
        It is proved that no plan of those that are looked at is valid; the answer names them.
    NO_ANSWER
        Neither a plan nor a proof within the limits.
    FAILURE
        A device, engine or backend failed or is not there.
    VERIFICATION
        A plan breaks its problem, proofs contradict each other, or numbers are wrong.
    NOTHING_LEFT
        A server has lost all its units, and they did not come back in time.
    INTERRUPTED
        The user pressed Ctrl-C.
    BROKEN_PIPE
        The reader of the output left, as in `gapless show ... | head`.
    """

    OK = 0
    INTERNAL = 1
    USAGE = 2
    INFEASIBLE = 3
    NO_ANSWER = 4
    FAILURE = 5
    VERIFICATION = 6
    NOTHING_LEFT = 7
    INTERRUPTED = 130
    BROKEN_PIPE = 141


def code_of_error(error: BaseException) -> ExitCode:
    """Return the exit code for an error."""
    match error:
        case InvalidInputError() | ExpressionError() | UnsupportedFeatureError():
            return ExitCode.USAGE
        case BackendDisagreementError() | OutputMismatchError():
            return ExitCode.VERIFICATION
        case NothingLeftError():
            return ExitCode.NOTHING_LEFT
        case GaplessError():
            return ExitCode.FAILURE
        case KeyboardInterrupt() | Abort():
            return ExitCode.INTERRUPTED
        case OSError():
            return ExitCode.FAILURE
    return ExitCode.INTERNAL


def code_of_result(result: SolveResult) -> ExitCode:
    """Return the exit code for the answer of one backend."""
    from ...solvers.protocol import SolveStatus

    match result.status:
        case SolveStatus.INFEASIBLE:
            return ExitCode.INFEASIBLE
        case SolveStatus.NO_SOLUTION:
            return ExitCode.NO_ANSWER
    return ExitCode.OK


def code_of_front(front: ParetoFront) -> ExitCode:
    """Return the exit code for the trade-offs of a problem."""
    if front.points:
        return ExitCode.OK
    return ExitCode.INFEASIBLE if front.complete else ExitCode.NO_ANSWER


def code_of_comparison(comparison: Comparison, *, required: Collection[str]) -> ExitCode:
    """Return the exit code for a comparison.

    `required`: backends that were named by the user: that one of them gives no answer is a failure, while a
    default backend that is not installed is merely left out.
    """
    errors = [failure.error for failure in comparison.failures]
    if comparison.disagreements or any(isinstance(e, BackendDisagreementError) for e in errors):
        return ExitCode.VERIFICATION
    missed = [f for f in comparison.failures if f.backend in required or not _is_left_out(f.error)]
    if missed or not comparison.results:
        return ExitCode.FAILURE
    return min(map(code_of_result, comparison.results))


def _is_left_out(error: BackendError) -> bool:
    """Return whether a backend merely is not there or not for this problem."""
    return isinstance(error, BackendUnavailableError | UnsupportedFeatureError)
