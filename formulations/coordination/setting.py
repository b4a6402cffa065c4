"""Where requests are served: the units, what networks cost on them, and how the units behave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

from ..chain import Chain, build_chain
from ..costs import CostTable, Interference
from ..errors import InvalidInputError
from ..hardware import Platform, UnitKind
from ..network import Network
from ..validation import meant
from .behaviour import Behaviour, UnitBehaviour
from .policy import Conduct, Policy
from .record import Ran, covered_us
from .sections import Section, Session, sections_of, sessions_of
from .times import NetworkTimes, Times, chunk_times, shortest_latency_us, whole_times

if TYPE_CHECKING:
    from ..problem import Problem

MOST_SECTIONS = 200
"""Most sections of one network: the number of its chunks grows with the square."""

_ONE_OF_A_HUNDRED = 10


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A platform, the networks that can be asked for, and what they cost.

    Attributes
    ----------
    platform, networks, costs
        See the types; there are costs of every network.
    interference
        How much units slow each other down; None: they do not.
    behaviour
        How units behave beyond that; None: one chunk after the other, always alike.
    borders
        Further borders of sections, by network.
    sessions
        The chunks that are loaded (`sessions.loaded_within`), by network; of others all are.
    """

    platform: Platform
    networks: tuple[Network, ...]
    costs: CostTable
    interference: Interference | None = None
    behaviour: Behaviour | None = None
    borders: Mapping[str, tuple[int, ...]] = field(default_factory=lambda: MappingProxyType({}))
    sessions: Mapping[str, frozenset[Session]] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        for network, chain, sections in zip(self.networks, self.chains, self.sections, strict=True):
            self._check(network, chain, sections)
        if strange := sorted(set(self.borders) - {network.name for network in self.networks}):
            raise InvalidInputError(f"borders of {strange[0]!r} are given; {self._meant(strange[0])}")

    @classmethod
    def of(cls, problem: Problem, behaviour: Behaviour | None = None) -> Setting:
        """Return the platform, networks, costs and slowdowns of a problem, whatever else it asks.

        What the behaviour does not say of a unit, its platform may.

        Raises
        ------
        InvalidInputError
            Its costs depend on the number of units in use, which changes here all the time.
        """
        if problem.co_run_costs is not None:
            raise InvalidInputError(
                "its costs depend on how many units a plan uses, and here that changes all the time; choose "
                'one table: --costs isolated, in Python shipped_problem(NAME, method="isolated")'
            )
        return cls(
            platform=problem.platform,
            networks=problem.networks,
            costs=problem.costs,
            interference=problem.interference,
            behaviour=(behaviour or Behaviour(platform=problem.platform.name)).on(problem.platform),
        )

    def _check(self, network: Network, chain: Chain, sections: tuple[Section, ...]) -> None:
        if len(sections) > MOST_SECTIONS:
            raise InvalidInputError(
                f"network {network.name!r} has {len(sections)} sections on {self.platform.name!r}, at most "
                f"{MOST_SECTIONS} are possible; group its operators into fewer layers"
            )
        held = {start for start, stop, _ in sessions_of(chain, sections) if stop == start + 1}
        for index, section in enumerate(sections):
            if index not in held:
                first, last = network.layers[section.start].name, network.layers[section.stop - 1].name
                raise InvalidInputError(
                    f"no unit of {self.platform.name!r} can run the layers {section.start} ({first!r}) to "
                    f"{section.stop - 1} ({last!r}) of {network.name!r}"
                    + (", or none of those that can has the memory" if section.units else "")
                )

    @cached_property
    def chains(self) -> tuple[Chain, ...]:
        """The costs of each network."""
        return tuple(
            build_chain(self.platform, network, self.costs.of(network.name)) for network in self.networks
        )

    @cached_property
    def sections(self) -> tuple[tuple[Section, ...], ...]:
        """The sections of each network."""
        return tuple(sections_of(chain, self.borders.get(chain.network, ())) for chain in self.chains)

    @cached_property
    def by_worker(self) -> Setting:
        """The same with a unit for each worker (`Platform.by_worker`), all of which work at the same time."""
        platform = self.platform
        if all(unit.workers == 1 for unit in platform.units):
            return self
        columns, whole = platform.worker_units, platform.by_worker()
        names = whole.unit_names
        behaviour = self.behaviour and replace(
            self.behaviour,
            units=tuple(
                replace(self.behaviours[column], unit=name)
                for column, name in zip(columns, names, strict=True)
            ),
        )
        interference = self.interference and replace(
            self.interference,
            units=names,
            slowdown_permille=tuple(
                tuple(self.interference.slowdown_permille[row][column] for column in columns)
                for row in columns
            ),
        )
        networks = tuple(costs.of_columns(columns) for costs in self.costs.networks)
        return replace(
            self,
            platform=whole,
            costs=replace(self.costs, units=names, networks=networks),
            interference=interference,
            behaviour=behaviour,
            sessions={
                network: frozenset(
                    (start, stop, index)
                    for start, stop, unit in kept
                    for index, column in enumerate(columns)
                    if column == unit
                )
                for network, kept in self.sessions.items()
            },
        )

    def served_by(self, policy: Policy) -> Setting:
        """Return the setting as a policy sees it: applications without coordination see no workers."""
        return self if policy.conduct is Conduct.ALONE else self.by_worker

    @property
    def ideal(self) -> Setting:
        """The same where nothing slows anything down, and units are always alike."""
        places = self.platform.places
        pairs = zip(self.platform.units, places, strict=True)
        workers = [max(unit.workers, places.count(place)) for unit, place in pairs]
        alike = tuple(
            UnitBehaviour(unit=unit, sharing_permille=(1000,) * count)
            for unit, count in zip(self.platform.unit_names, workers, strict=True)
            if count > 1
        )
        behaviour = Behaviour(platform=self.platform.name, units=alike) if alike else None
        return replace(self, behaviour=behaviour, interference=None)

    @cached_property
    def behaviours(self) -> tuple[UnitBehaviour, ...]:
        """How each unit behaves."""
        known = self.behaviour or Behaviour(platform=self.platform.name)
        return tuple(known.of(unit) for unit in self.platform.unit_names)

    def index(self, network: str) -> int:
        """Return the index of a network.

        Raises
        ------
        InvalidInputError
            There is none of this name.
        """
        for index, each in enumerate(self.networks):
            if each.name == network:
                return index
        raise InvalidInputError(f"no network is called {network!r}; {self._meant(network)}")

    def _meant(self, network: str) -> str:
        return meant(network, [each.name for each in self.networks])

    @cached_property
    def processors(self) -> tuple[int, ...]:
        """Units that fallen layers run on: CPUs that can run every layer, in order."""
        return tuple(
            index
            for index, unit in enumerate(self.platform.units)
            if unit.kind is UnitKind.CPU
            and all(index in section.units for parts in self.sections for section in parts)
        )

    def network_times(self, policy: Policy) -> tuple[NetworkTimes, ...]:
        """Return what a policy may start, and what that takes by the table of costs.

        Raises
        ------
        InvalidInputError
            The policy places networks whole, and no CPU can run all layers.
        """
        pairs = zip(self.chains, self.sections, strict=True)
        if policy.conduct is Conduct.CHUNKS:
            sessions = {} if policy.any_chunk else self.sessions
            return tuple(
                replace(chunk_times(chain, parts), loaded=sessions.get(chain.network))
                for chain, parts in pairs
            )
        return tuple(whole_times(*pair, policy.fallback, self.processor(policy)) for pair in pairs)

    def processor(self, policy: Policy) -> int:
        """Return the unit that fallen layers are expected to run on; errors as for `network_times`."""
        if not self.processors:
            raise InvalidInputError(
                f"policy {policy.name!r} places networks whole: what a unit cannot run falls back to a CPU "
                f"that can run everything, and {self.platform.name!r} has none"
            )
        return self.processors[0]

    def costs_of(self, networks: Sequence[str]) -> CostTable:
        """Return the costs of some networks alone."""
        return replace(self.costs, networks=tuple(self.costs.of(name) for name in networks))

    def isolated_us(self, network: int) -> int:
        """Return the shortest time of a network that is alone on all units, in one chunk or several."""
        times = Times(self.platform.unit_names, [chunk_times(self.chains[network], self.sections[network])])
        found = shortest_latency_us(times, 0)
        assert found is not None  # every section has a unit
        return found

    def p99_us(self, network: int) -> int:
        """Return the 99th percentile of the time of a network alone, placed whole on the fastest unit.

        Where at least one of a hundred chunks is drawn to take longer, that is the longer time. A network
        that no unit can run whole is counted as the shortest sequence of chunks.
        """
        chain, found = self.chains[network], []
        for unit, behaviour in enumerate(self.behaviours):
            if chain.runs(0, chain.layer_count, unit):
                long = behaviour.tail_share_permille > _ONE_OF_A_HUNDRED
                tail = behaviour.tail_permille if long else 1000
                found.append(chain.busy_us(0, chain.layer_count, unit) * tail // 1000)
        return min(found, default=self.isolated_us(network))

    def energy_mj(self, ran: Sequence[Ran], time_us: float) -> float | None:
        """Return the energy of the device in millijoule; None: powers are not known.

        A unit takes as much with several workers at work as with one.

        Parameters
        ----------
        ran
            What ran.
        time_us
            How long it took in all.
        """
        places, names = self.platform.places, self.platform.unit_names
        busy_us = {
            names[place]: covered_us(ran, {unit for unit, first in enumerate(places) if first == place})
            for place in sorted(set(places))
        }
        return (self.behaviour or Behaviour(platform=self.platform.name)).energy_mj(busy_us, time_us)
