"""What makes tests shorter, and does not change what they say.

Measurements have the same items and records as for a user, with fewer repetitions, and races on this
machine have one rung instead of four: tests that measure (the marker `measures`), pages and notebooks look
at what is done and said, never at how long something took. A busy machine is no failure, either: no profile
is given up for its noise.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module

from gapless.executor.runner import Runner
from gapless.executor.simulated import SimulatedRunner
from gapless.executor.tuning import racing, store, tuner
from gapless.executor.tuning.race import Race
from gapless.executor.tuning.racing import Rung, TuningMode, TuningOptions
from gapless.profiler import hops, records, summary, survey
from gapless.profiler.profile import ProfileOptions
from gapless.profiler.sampling import Effort
from gapless.profiler.summary import Summary, Timing

_SHARE = 0.1
"""Of the seconds of each visit of a race, and of each trial of hops."""

_RUNGS = (Rung(seconds=0.05),)
"""Of a race on this machine: each visit starts processes, and two are what a verdict needs."""

_REPETITIONS, _SECONDS = 3, 0.003
"""Of each item of a profile."""


def shorten(patch: Callable[[object, str, object], None] = setattr) -> None:
    """Shorten profiles and races of this process from now on; `patch` can be `monkeypatch.setattr`."""
    usual = vars(ProfileOptions)["effort"].fget

    def short(asked: ProfileOptions) -> Effort:
        effort: Effort = usual(asked)
        return replace(
            effort,
            min_repetitions=min(effort.min_repetitions, _REPETITIONS),
            min_seconds=min(effort.min_seconds, _SECONDS),
            warm_up_repetitions=min(effort.warm_up_repetitions, 1),
        )

    rungs = {
        mode: tuple(replace(rung, seconds=rung.seconds * _SHARE) for rung in steps)
        for mode, steps in racing.RUNGS.items()
    }

    def brief(contest: object, runner: Runner, run: object, asked: TuningOptions, report: object) -> Race:
        if asked.mode is TuningMode.RACE and not isinstance(runner, SimulatedRunner):
            asked = replace(asked, rungs=asked.rungs or _RUNGS)
        return Race(contest, runner, run, asked, report)  # type: ignore[arg-type]

    patch(tuner, "Race", brief)
    patch(ProfileOptions, "effort", property(short))
    patch(racing, "RUNGS", rungs)
    patch(records, "steadiest", _once)
    patch(hops, "TRIAL_US", round(hops.TRIAL_US * _SHARE))
    patch(survey, "compare_references", _of_any_noise)


def wait_for_no_disk() -> None:
    """Let nothing in this process wait until files are on the disk: no test survives a power cut.

    A commit takes some milliseconds otherwise, and a race has a hundred.
    """
    os.fsync = lambda fd: None
    store.SYNCHRONOUS = "OFF"


def load_for_children() -> None:
    """Load the solvers here: children that solve, some thousands, then need not.

    The product does so in children only (`solvers/test_hazards.py`): OR-Tools and some versions of HiGHS
    cannot share a process, so HiGHS is not loaded here.
    """
    for name in ("ortools.sat.python.cp_model", "z3", "pulp"):
        with suppress(ImportError):
            import_module(name)


def _once(measure: Callable[[], Timing], *, retries: int, known: Timing | None = None) -> Timing:
    return summary.steadiest(measure, retries=min(retries, 0), known=known)


def _of_any_noise(unit: str, references: Sequence[Summary], *, most_far: float) -> tuple[str, ...]:
    return summary.compare_references(unit, references, most_far=max(most_far, summary.ANY_NOISE))
