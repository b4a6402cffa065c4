"""Shipped phones and scenarios for requests as they come, by name. Nothing is read before it is asked for."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from importlib.resources import files

from ...formulations.coordination.behaviour import Behaviour
from ...formulations.coordination.scenario import BEHAVIOUR, SCENARIO, Scenario
from ...formulations.coordination.setting import Setting
from ...formulations.costs import CostTable
from ...formulations.errors import InvalidInputError
from ...formulations.files import NETWORK, PLATFORM, Document, Schema, parse
from ...formulations.hardware import Platform
from ...formulations.network import Network
from ...formulations.validation import meant, shown
from ..analytic.costs import network_costs
from ..analytic.model import ANALYTIC, AnalyticModel
from ..platforms.catalog import shipped_platform
from ..platforms.workloads import phone_model, phone_names, phone_network, phone_network_names


def coordinated_phone_names() -> tuple[str, ...]:
    """Return the names of the phones that have a behaviour at work."""
    return _entries("phones")


def setting_names() -> tuple[str, ...]:
    """Return the names of all platforms that `shipped_setting` knows; the others behave as by default."""
    return (*coordinated_phone_names(), *phone_names())


def setting_network_names() -> tuple[str, ...]:
    """Return the names of the networks that `shipped_setting` knows."""
    return tuple(sorted({*_entries("networks"), *phone_network_names()}))


def shipped_setting(platform: str, networks: Sequence[str]) -> Setting:
    """Return a shipped phone with networks; costs are computed, and marked as estimated.

    Parameters
    ----------
    platform
        One of `setting_names`.
    networks
        Some of `setting_network_names`; `Scenario.networks` are those of a scenario.

    Raises
    ------
    InvalidInputError
        There is no such phone or network; or no network is given.
    """
    _check(platform, setting_names(), "phone for requests")
    for name in networks:
        _check(name, setting_network_names(), "network with costs on phones")
    if not networks:
        raise InvalidInputError(f"no networks for {platform!r}; name at least one")
    found = tuple(map(_network, dict.fromkeys(networks)))
    model = setting_model(platform)
    return Setting(
        platform=setting_platform(platform),
        networks=found,
        costs=CostTable(
            units=tuple(unit.unit for unit in model.units),
            networks=tuple(network_costs(network, model) for network in found),
            provenance=model.provenance,
        ),
        behaviour=shipped_behaviour(platform),
    )


def setting_model(platform: str) -> AnalyticModel:
    """Return the model that costs on a phone are computed by, with the operators that its units lack."""
    _check(platform, setting_names(), "phone for requests")
    if platform in phone_names():
        return phone_model(platform)
    return _read(f"phones/{platform}/analytic.json", ANALYTIC)


def shipped_behaviour(platform: str) -> Behaviour:
    """Return how the units of a phone behave at work; those of Hetero2Pipe as by default."""
    if platform not in coordinated_phone_names():
        return Behaviour(platform=platform)
    return _read(f"phones/{platform}/behaviour.json", BEHAVIOUR)


def scenario_names() -> tuple[str, ...]:
    """Return the names of the shipped scenarios."""
    return _entries("scenarios")


def shipped_scenario(name: str) -> Scenario:
    """Return a shipped scenario.

    Raises
    ------
    InvalidInputError
        There is no such scenario.
    """
    _check(name, scenario_names(), "shipped scenario")
    return _read(f"scenarios/{name}.json", SCENARIO)


def _check(name: str, known: Collection[str], called: str) -> None:
    if name not in known:
        raise InvalidInputError(f"no {called} is called {shown(name)}; {meant(name, tuple(known))}")


def setting_platform(name: str) -> Platform:
    """Return a phone, whose units say which operators they lack; errors as for `setting_model`."""
    _check(name, setting_names(), "phone for requests")
    if name in phone_names():
        return shipped_platform(name)
    return _read(f"phones/{name}/platform.json", PLATFORM)


@cache
def _network(name: str) -> Network:
    own = _entries("networks")
    return _read(f"networks/{name}.json", NETWORK) if name in own else phone_network(name)


@cache
def _entries(folder: str) -> tuple[str, ...]:
    entries = (entry.name for entry in files(__package__).joinpath(folder).iterdir())
    return tuple(sorted(name.removesuffix(".json") for name in entries))


def _read(path: str, schema: Schema[Document]) -> Document:
    return parse(files(__package__).joinpath(path).read_bytes(), schema, name=f"shipped {path}")
