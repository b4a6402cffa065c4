"""Hetero2Pipe's study recomputed, beside what the paper prints: `python -m benchmarks.hetero2pipe`.

    python -m benchmarks.hetero2pipe                          # all that is simulated, half an hour
    python -m benchmarks.hetero2pipe --parts 7,8 --platforms kirin990 --count 20 --limit 0.3
    python -m benchmarks.hetero2pipe --parts returning,hops --count 14 --limit 0.5   # coming back to a unit
    python -m benchmarks.hetero2pipe --parts cases            # each combination with its bound and gap
    python -m benchmarks.hetero2pipe --parts here9,here10,here11   # measured on this machine
    python -m benchmarks.hetero2pipe --parts 7,9,12 --pictures docs/images

Its phones were not there: costs are *estimated* by a model that is calibrated to the few times that the paper
prints (`gapless show --platform kirin990 --workload bert` says which); plans, their makespans under those
costs, bounds and proofs are computed here, now. Every plan is judged by the same simulation with slowdown.
A plan counts as proven where a backend has proven it, or where it meets a bound exactly.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import date

from rich.console import Console

import gapless

from ..arguments import chosen, folder, positive
from ..printing import WIDTH, Part, show
from . import here, phones, planners, returning
from .playing import Study

PARTS: dict[str, Callable[[Study], Iterator[Part]]] = {
    "classes": phones.classes,
    "2a": phones.figure_2a,
    "policies": planners.policies,
    "7": planners.figure_7,
    "8": planners.figure_8,
    "steps": planners.steps,
    "exact": planners.exact,
    "pipe-it": planners.processors,
    "9": phones.figure_9,
    "10": phones.figure_10,
    "11": phones.figure_11,
    "12": phones.figure_12,
    "13": phones.figure_13,
    "spaces": phones.spaces,
    "returning": returning.returning,
    "hops": returning.hops,
    "cases": planners.cases,
    "here9": here.figure_9,
    "here10": here.figure_10,
    "here11": here.figure_11,
}
"""Figures by number, and what explains them; "here": measured on this machine."""

USUAL = tuple(name for name in PARTS if name != "cases" and not name.startswith("here"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what is asked for; 130: interrupted, what was done until then is printed."""
    usual = Study()
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.hetero2pipe", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--parts", type=chosen(tuple(PARTS)), help=f"some of {','.join(PARTS)}")
    parser.add_argument("--platforms", type=chosen(usual.platforms), default=usual.platforms)
    parser.add_argument(
        "--count", type=positive, default=usual.count, help="combinations for each device; 100"
    )
    parser.add_argument(
        "--limit",
        type=positive,
        default=usual.limit_s,
        help="of the processor, for native and annealing; 1 s",
    )
    parser.add_argument(
        "--exact", type=positive, default=usual.exact_s, help="the same for a proof with three requests; 10 s"
    )
    parser.add_argument(
        "--exact-count", type=positive, default=usual.exact_count, help="combinations of three requests; 20"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--balance", action="store_true", help="batch light networks (Appendix D)")
    parser.add_argument("--pictures", type=folder, metavar="FOLDER", help="also draw the figures there")
    asked = parser.parse_args(arguments)
    study = Study(
        platforms=tuple(asked.platforms),
        count=max(2, round(asked.count)),
        seed=asked.seed,
        balance=asked.balance,
        limit_s=asked.limit,
        exact_s=asked.exact,
        exact_count=max(1, round(asked.exact_count)),
    )
    console = Console(width=WIDTH, highlight=False)
    machine, cores = platform.processor() or platform.machine(), len(os.sched_getaffinity(0))
    console.print(
        f"{date.today()}, {machine}, {cores} cores, load {os.getloadavg()[0]:.1f}, Python "
        f"{platform.python_version()}, gapless {gapless.__version__}; estimated phones, {study.count} "
        f"combinations each, native and annealing {study.limit_s:g} s of the processor; what is not the "
        "paper's is computed here",
        soft_wrap=True,
    )
    try:
        for name in asked.parts or USUAL:
            with Console(stderr=True).status(name):
                for part in PARTS[name](study):
                    show(console, part)
                if asked.pictures is not None:
                    from .pictures import PICTURES, save  # noqa: PLC0415 -- matplotlib is an extra

                    if name in PICTURES:
                        print(f"drawn: {save(study, name, asked.pictures)}", file=sys.stderr)
    except KeyboardInterrupt:
        print("interrupted: what is above is complete", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
