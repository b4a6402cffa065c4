"""Values that the shell may complete: names that are known, and files that fit.

Everything is imported where it is needed: a completion must be there at once. Nothing is measured, run or
written.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """What may stand as the value of a parameter."""

    names: Callable[[Mapping[str, str]], Iterable[str]] = lambda said: ()
    """Returns the names; it gets what else was said, by parameter."""
    suffixes: tuple[str, ...] = ()
    """Endings of files that may stand there, too; then folders are offered as well."""
    listed: bool = False  # several names stand between commas
    ending: str = ""  # what follows a name, e.g. "="

    def matching(self, word: str, said: Mapping[str, str]) -> list[str]:
        """Return what an unfinished word can become."""
        done, comma, last = word.rpartition(",") if self.listed else ("", "", word)
        taken = set(done.split(",")) if comma else set()
        found = [name for name in self.names(said) if name.startswith(last) and name not in taken]
        values = [f"{name}{self.ending}" for name in found]
        values += _paths(last, self.suffixes) if self.suffixes else []
        return [f"{done}{comma}{value}" for value in values]


def _paths(word: str, suffixes: tuple[str, ...]) -> list[str]:
    """Return the folders, and the files with one of some endings, that a word can become."""
    folder, begun = os.path.split(word)
    try:
        entries = sorted(Path(os.path.expanduser(folder) or ".").iterdir())
    except OSError:
        return []
    found = []
    for entry in entries:
        if not entry.name.startswith(begun) or entry.name.startswith("."):
            continue
        # A name that begins like an option would be one.
        path = os.path.join(folder or "." * entry.name.startswith("-"), entry.name)
        if entry.is_dir():
            found.append(f"{path}/")
        elif entry.name.endswith(suffixes):
            found.append(path)
    return found


def _from(*lists: str, also: tuple[str, ...] = ()) -> Callable[[Mapping[str, str]], Iterable[str]]:
    """Return what gives the names of some lists (`_list`); their modules are loaded when it is used."""

    def names(said: Mapping[str, str]) -> Iterable[str]:
        for each in lists:
            yield from _list(each)()
        yield from also

    return names


def _list(name: str) -> Callable[[], Iterable[str]]:
    """Return what gives the names of a list; no other is loaded."""
    names: Callable[[], Iterable[str]]
    match name:
        case "networks":
            from ...api.models import built_in_names as names
        case "platforms":
            from ...profiler.platforms.catalog import platform_names as names
        case "phones":
            from ...profiler.platforms.workloads import phone_names as names
        case "networks of phones":
            from ...profiler.platforms.workloads import phone_network_names as names
        case "problems":
            from ...profiler.platforms.catalog import shipped_names as names
        case "phones of requests":
            from ...profiler.coordination.catalog import setting_names as names
        case "scenarios":
            from ...profiler.coordination.catalog import scenario_names as names
        case "clusters":
            from ...profiler.clusters.catalog import cluster_names as names
        case "costs":
            from ...formulations.co_run import co_run_model_names as names
        case "engines":
            from ...executor.engines.registry import engine_names as names
        case "backends":
            from ...solvers.registry import backend_names as names
        case _:
            raise AssertionError(name)
    return names


def _requested(said: Mapping[str, str]) -> Iterable[str]:
    from ...profiler.platforms.catalog import network_names, platform_names

    platform = said.get("platform", "")
    if platform in platform_names():
        return network_names(platform)
    return _from("networks of phones")(said)


def _units(said: Mapping[str, str]) -> Iterable[str]:
    """Clusters and cores of this machine; no engine is asked for more units, which would take too long."""
    from ...profiler.platforms.detected import detect_platform

    return detect_platform().unit_names


def _before_a_plan(said: Mapping[str, str]) -> Iterable[str]:
    """Shipped problems; behind one stands a plan, which is a file."""
    return () if "files" in said else _from("problems")(said)


def _objectives(said: Mapping[str, str]) -> Iterable[str]:
    from ...formulations.registry import formulation_named, formulation_names

    names = (formulation_named(name).terms for name in formulation_names())
    return (*dict.fromkeys(term for terms in names for term in terms), "paper", "slack:")


def _formats(said: Mapping[str, str]) -> Iterable[str]:
    from ...files.formats import FORMATS

    return tuple(each.name for each in FORMATS)


def _modes(said: Mapping[str, str]) -> Iterable[str]:
    from ...executor.tuning.racing import TuningMode

    return tuple(TuningMode)


JSON = (".json",)
PYTHON = (".py",)
YAML = (".yml", ".yaml")
_costs = _from("costs")
_backends = _from("backends")
MODEL = Values(names=_from("networks"), suffixes=(".onnx", ".py"))
PROBLEM = Values(names=_from("problems"), suffixes=JSON)
FILE = Values(suffixes=JSON)

VALUES: Mapping[str, Values] = {
    "at": Values(suffixes=(".onnx",)),
    "backend": Values(names=_backends, suffixes=PYTHON),
    "backends": Values(names=_backends, suffixes=PYTHON, listed=True),
    "beside": Values(names=_units, listed=True),
    "contention": FILE,
    "costs": Values(names=_costs),
    "emulate": Values(names=_units, ending="="),
    "device_types": Values(suffixes=YAML),
    "devices": Values(),
    "engine": Values(names=_from("engines", also=("simulated",)), suffixes=PYTHON),
    "executions": FILE,
    "files": Values(names=_before_a_plan, suffixes=JSON),
    "folder": Values(suffixes=("/",)),
    "folders": Values(suffixes=("/",)),
    "format": Values(names=_formats),
    "form": Values(names=lambda said: ("pipeedge",)),
    "given": PROBLEM,
    "measured": FILE,
    "mode": Values(names=_modes),
    "model": MODEL,
    "models": MODEL,
    "networks": MODEL,
    "objective": Values(names=_objectives, listed=True),
    "plan": FILE,
    "platform": Values(names=_from("clusters", "phones", "platforms"), suffixes=JSON),
    "problem": PROBLEM,
    "rules": Values(suffixes=PYTHON),
    "scenario": Values(names=_from("scenarios"), suffixes=JSON),
    "spec": Values(suffixes=(".json", ".py")),
    "subjects": Values(names=_from("networks", "problems"), suffixes=(".onnx", ".py", ".json")),
    "support": Values(names=_from("phones of requests", also=("trials",)), suffixes=JSON),
    "tasks": Values(names=_from("networks", "problems"), suffixes=JSON, ending=":"),
    "truth": Values(names=_costs),
    "units": Values(names=_units, listed=True),
    "workload": Values(names=_requested, listed=True),
}
"""What may stand as a value, by the name of the parameter; for others the shell offers files."""

VALUES_OF_COMMAND: Mapping[tuple[str, str], Values] = {
    ("requests coordinate", "platform"): Values(names=_from("phones of requests")),
    ("tools import", "devices"): Values(suffixes=YAML),
    ("tools import", "models"): Values(suffixes=YAML),
    ("tools import", "model"): Values(),
    ("costs interference", "subjects"): Values(
        names=_from("networks", "platforms", "problems"), suffixes=(".onnx", ".py", ".json")
    ),
}
"""Where a command means something else by a name."""


def values_of(command: str, parameter: str) -> Values | None:
    """Return what may stand as a value of a parameter; None: nothing is known."""
    return VALUES_OF_COMMAND.get((command, parameter), VALUES.get(parameter))
