"""Sizes of batches as a decision: which inferences of a workload are served together.

A batch of b inferences is a request of its own ("mobilenetv2*4"): it takes less time than b requests, and it
leaves as a whole. For each network of a workload one size is chosen; what does not fill a batch of it is a
smaller one, or single requests where costs of that size are not known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import inf
from typing import Unpack

from ..formulations.errors import InvalidInputError
from ..formulations.problem import Problem
from ..formulations.workload import MOST_BATCH, requests_of, split_batch
from ..solvers.protocol import Backend, SolveOptions
from ..solvers.result import SolveResult
from ..solvers.session import solve
from .problems import ServiceWords, load_problem, load_workload

MOST_CHOICES = 100
"""Most combinations of sizes that are planned."""

COMPARABLE = ("makespan", "period", "work", "peak_memory")
"""First terms of objectives that mean the same whether inferences come one by one or in batches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchChoice:
    """One choice of sizes, and what can be planned with it."""

    workload: str  # its requests, as for `load_workload`
    problem: Problem
    result: SolveResult
    """The problem with these requests, and the answer to it."""

    @property
    def key(self) -> tuple[float, ...]:
        """What orders choices: the values of the objective; those without a plan come last."""
        return (inf,) if self.result.values is None else self.result.values


def plan_batches(
    workload: str,
    sizes: Sequence[int],
    *,
    backend: str | Backend = "native",
    time_limit_s: float | None = None,
    **service: Unpack[ServiceWords],
) -> tuple[BatchChoice, ...]:
    """Choose the sizes of batches of a workload, and plan it.

    Parameters
    ----------
    workload
        Requests with counts, e.g. "yolov4,mobilenetv2x8"; batches in it stay as they are.
    sizes
        Sizes that may be chosen; 1 is always among them.
    backend, time_limit_s
        As for `plan`; the limit is for all choices together: half of it to compare them, half for the best.
    service
        As for `load_workload`: a platform or a problem, windows, and so on. A problem has networks of its own
        for batches: "net*4" for four inferences of "net".

    Returns
    -------
    tuple of BatchChoice
        The best one first: that with the least objective for all inferences together which keeps all limits
        and windows.

    Raises
    ------
    InvalidInputError
        As for `load_workload`; a size is not valid; there are too many choices; or the objective means
        another thing for batches.
    """
    known = None
    if service.get("problem") is not None:
        known = [network.name for network in load_problem(str(service["problem"])).networks]
    texts = batchings(workload, sizes, known)
    return compared(
        texts, lambda text: load_workload(text, **service), backend, SolveOptions(time_limit_s=time_limit_s)
    )


def batchings(workload: str, sizes: Sequence[int], known: Collection[str] | None = None) -> tuple[str, ...]:
    """Return the workloads with each choice of sizes, single inferences first.

    `known`: the networks that have costs, batches under names of their own; None: those of the shipped
    phones, in batches of any size.
    """
    from ..profiler.platforms.workloads import phone_network_names

    wrong = [size for size in sizes if not 1 <= size <= MOST_BATCH]
    if wrong or not sizes:
        raise InvalidInputError(
            f"sizes of batches are {', '.join(map(str, sizes)) or 'not given'}; from 1 to {MOST_BATCH} is "
            "possible, e.g. 1,2,4"
        )
    names = phone_network_names() if known is None else known
    for size in sizes:
        if known is not None and size > 1 and not any(split_batch(name)[1] == size for name in known):
            raise InvalidInputError(
                f"the problem has no network in batches of {size}; it has {', '.join(known)}. "
                "`gapless profile MODEL --batch 1,2,4` measures some"
            )
    counts = Counter(request.network for request in requests_of(workload, names, batches=known is None))
    ways = [tuple(dict.fromkeys(_ways(name, n, sizes, known))) for name, n in counts.items()]
    choices = [",".join(chosen) for chosen in product(*ways)]
    if len(choices) > MOST_CHOICES:
        raise InvalidInputError(
            f"the sizes can be combined in {len(choices)} ways, more than {MOST_CHOICES}: give fewer of them"
        )
    return tuple(choices)


def _ways(name: str, count: int, sizes: Sequence[int], known: Collection[str] | None) -> Iterator[str]:
    """Yield a number of inferences of a network in batches of each size, the smallest first."""

    def entry(size: int, many: int) -> str:
        return (f"{name}*{size}" if size > 1 else name) + (f"x{many}" if many > 1 else "")

    for size in sorted({1, *sizes}):
        fits = size <= count and split_batch(name)[1] == 1
        if size == 1:
            yield entry(1, count)
        elif fits and (known is None or f"{name}*{size}" in known):
            many, rest = divmod(count, size)
            whole = rest > 1 and (known is None or f"{name}*{rest}" in known)
            last = [entry(rest, 1)] if whole else [entry(1, rest)] if rest else []
            yield ",".join([entry(size, many), *last])


def compared(
    texts: Sequence[str],
    make: Callable[[str], Problem],
    backend: str | Backend,
    options: SolveOptions,
    on_choice: Callable[[int], None] = lambda place: None,
) -> tuple[BatchChoice, ...]:
    """Plan every choice, and the best one once more with the time that is left; the best one first.

    `texts`: the choices, of `batchings`.
    """
    half_s = None if options.time_limit_s is None else options.time_limit_s / 2
    share = replace(options, time_limit_s=None if half_s is None else half_s / len(texts), top=1, distance=1)
    found = []
    for place, text in enumerate(texts):
        on_choice(place)
        problem = make(text)
        if problem.objective.first not in COMPARABLE:
            raise InvalidInputError(
                f"the objective {problem.objective} means another thing for batches; one that begins with "
                f"{', '.join(COMPARABLE)} can choose their sizes"
            )
        found.append(BatchChoice(workload=text, problem=problem, result=solve(problem, backend, share)))
    best, *others = sorted(found, key=lambda choice: choice.key)
    if best.result.values is not None:
        again = replace(best, result=solve(best.problem, backend, replace(options, time_limit_s=half_s)))
        best = min(again, best, key=lambda choice: choice.key)
    return best, *others
