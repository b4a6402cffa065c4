"""Values that the shell may complete: names that are known, and files that fit.

Everything is imported where it is needed: a completion must be there at once. Nothing is measured, run or
written.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
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


def _from(*places: str, also: tuple[str, ...] = ()) -> Callable[[Mapping[str, str]], Iterable[str]]:
    """Return what asks functions for names, each "module:function"; modules are loaded when they are used."""

    def names(said: Mapping[str, str]) -> Iterable[str]:
        for place in places:
            module, _, function = place.partition(":")
            yield from getattr(import_module(f"...{module}", __package__), function)()
        yield from also

    return names


_NETWORKS = "api.models:built_in_names"
_PLATFORMS = "profiler.platforms.catalog:platform_names"
_PHONES = "profiler.platforms.workloads:phone_names"
_PROBLEMS = "profiler.platforms.catalog:shipped_names"
_REQUEST_PHONES = "profiler.coordination.catalog:setting_names"


def _requested(said: Mapping[str, str]) -> Iterable[str]:
    from ...profiler.platforms.catalog import network_names, platform_names

    platform = said.get("platform", "")
    if platform in platform_names():
        return network_names(platform)
    return _from("profiler.platforms.workloads:phone_network_names")(said)


def _units(said: Mapping[str, str]) -> Iterable[str]:
    """Clusters and cores of this machine; no engine is asked for more units, which would take too long."""
    from ...profiler.platforms.detected import detect_platform

    return detect_platform().unit_names


def _before_a_plan(said: Mapping[str, str]) -> Iterable[str]:
    """Shipped problems; behind one stands a plan, which is a file."""
    return () if "files" in said else _from(_PROBLEMS)(said)


def _objectives(said: Mapping[str, str]) -> Iterable[str]:
    from ...formulations.registry import formulation_named, formulation_names

    names = (formulation_named(name).terms for name in formulation_names())
    return (*dict.fromkeys(term for terms in names for term in terms), "paper", "slack:")


def _formats(said: Mapping[str, str]) -> Iterable[str]:
    from ...files.formats import FORMATS

    return tuple(each.name for each in FORMATS)


def _modes(said: Mapping[str, str]) -> Iterable[str]:
    from ...executor.tuning.options import TuningMode

    return tuple(TuningMode)


JSON = (".json",)
PYTHON = (".py",)
YAML = (".yml", ".yaml")
_costs = _from("formulations.co_run:co_run_model_names")
_backends = _from("solvers.registry:backend_names")
MODEL = Values(names=_from(_NETWORKS), suffixes=(".onnx", ".py"))
PROBLEM = Values(names=_from(_PROBLEMS), suffixes=JSON)
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
    "engine": Values(
        names=_from("executor.engines.registry:engine_names", also=("simulated",)), suffixes=PYTHON
    ),
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
    "platform": Values(
        names=_from("profiler.clusters.catalog:cluster_names", _PHONES, _PLATFORMS), suffixes=JSON
    ),
    "problem": PROBLEM,
    "rules": Values(suffixes=PYTHON),
    "scenario": Values(names=_from("profiler.coordination.catalog:scenario_names"), suffixes=JSON),
    "spec": Values(suffixes=(".json", ".py")),
    "subjects": Values(names=_from(_NETWORKS, _PROBLEMS), suffixes=(".onnx", ".py", ".json")),
    "support": Values(names=_from(_REQUEST_PHONES, also=("trials",)), suffixes=JSON),
    "tasks": Values(names=_from(_NETWORKS, _PROBLEMS), suffixes=JSON, ending=":"),
    "truth": Values(names=_costs),
    "units": Values(names=_units, listed=True),
    "workload": Values(names=_requested, listed=True),
}
"""What may stand as a value, by the name of the parameter; for others the shell offers files."""

VALUES_OF_COMMAND: Mapping[tuple[str, str], Values] = {
    ("coordinate", "platform"): Values(names=_from(_REQUEST_PHONES)),
    ("import", "devices"): Values(suffixes=YAML),
    ("import", "models"): Values(suffixes=YAML),
    ("import", "model"): Values(),
    ("interference", "subjects"): Values(
        names=_from(_NETWORKS, _PLATFORMS, _PROBLEMS), suffixes=(".onnx", ".py", ".json")
    ),
}
"""Where a command means something else by a name."""


def values_of(command: str, parameter: str) -> Values | None:
    """Return what may stand as a value of a parameter; None: nothing is known."""
    return VALUES_OF_COMMAND.get((command, parameter), VALUES.get(parameter))
