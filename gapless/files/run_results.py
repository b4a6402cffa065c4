"""What `gapless tune` and `gapless profile` left in a run folder, as the values that the functions return."""

from __future__ import annotations

import re
from pathlib import Path

from ..api.rounds import LOOP
from ..api.slowdown.side_by_side import Together
from ..api.tuned import Tuned
from ..executor.tuning.documents import TUNING
from ..formulations.files import load, load_problem
from ..formulations.problem import Problem
from ..profiler.profile import PROFILE, Profile
from .comparison_file import load_comparison

_NUMBERED = re.compile(r"profile-(\d+)\.json")


def load_profiled(place: Path) -> Profile | Together:
    """Return what was profiled; several networks that share the units were profiled together."""
    numbered = sorted(
        (int(found[1]), path) for path in place.iterdir() if (found := _NUMBERED.fullmatch(path.name))
    )
    if not numbered:
        return load(place / "profile.json", PROFILE)
    profiles = tuple(load(path, PROFILE) for _, path in numbered)
    return Together(profiles=profiles, problem=load_problem(place / "problem.json"))


def load_tuned(place: Path) -> Tuned:
    """Return what tuning found; opaque rules, which no file can keep, are not in its problem."""
    comparison = load_comparison(place / "comparison.json")
    problem = _planned(place, comparison.problem.fingerprint)
    rounds, profile = place / "rounds.json", place / "profile.json"
    return Tuned(
        problem=problem,
        profile=load(profile, PROFILE) if profile.is_file() else None,
        comparison=comparison.answers(problem),
        result=load(place / "tuning.json", TUNING),
        loop=load(rounds, LOOP) if rounds.is_file() else None,
    )


def _planned(place: Path, fingerprint: str) -> Problem:
    """Return the problem that was planned: of several cost models, the one that the backends were given."""
    problems = (load_problem(path) for path in sorted(place.glob("problem*.json")))
    found = next((problem for problem in problems if problem.fingerprint == fingerprint), None)
    return load_problem(place / "problem.json") if found is None else found
