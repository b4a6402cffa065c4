"""A problem: everything a backend needs to know, as one frozen value."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from functools import cached_property

from .chain import Chain, build_chain
from .costs import CostTable
from .errors import InvalidProblemError
from .hardware import Platform
from .network import Network
from .objective import Limits, Objective
from .rules import AnyRule, OpaqueRule, PlanView, Rule, RuleFunction, build_rule
from .validation import Defects


class Feature(StrEnum):
    """What an instance asks of a backend; computed from the instance, never declared."""

    UNSUPPORTED_LAYERS = "unsupported_layers"
    TRANSFERS = "transfers"
    UNIT_CONFLICTS = "unit_conflicts"
    UNIT_MEMORY = "unit_memory"
    DEVICE_MEMORY = "device_memory"
    CUT_RESTRICTIONS = "cut_restrictions"
    LIMITS = "limits"
    RULES = "rules"
    OPAQUE_RULES = "opaque_rules"
    SEVERAL_NETWORKS = "several_networks"


@dataclass(frozen=True, kw_only=True)  # no slots: the computed properties below are kept
class Problem:
    """Networks, the units they may run on, what that costs, and what is wanted.

    Attributes
    ----------
    platform
        The units.
    networks
        The networks to place.
    costs
        Time of each layer on each unit; its columns follow the units of the platform.
    objective
        What to minimise.
    limits
        Filters.
    rules
        Constraints of the user.
    """

    platform: Platform
    networks: tuple[Network, ...]
    costs: CostTable
    objective: Objective = Objective()
    limits: Limits = Limits()
    rules: tuple[AnyRule, ...] = ()

    def __post_init__(self) -> None:
        defects = Defects("problem")
        defects.check_size("networks", len(self.networks), most=100)
        defects.check_unique("network names", [network.name for network in self.networks])
        defects.check_unique("rule names", [rule.name for rule in self.rules])
        if self.costs.units != self.platform.unit_names:
            defects.add(
                f"the cost table is for the units {list(self.costs.units)}, "
                f"the platform has {list(self.platform.unit_names)}"
            )
        costed = {costs.network: len(costs.layer_us) for costs in self.costs.networks}
        for network in self.networks:
            rows, layers = costed.get(network.name), len(network.layers)
            if rows is None:
                defects.add(f"network {network.name!r} has no costs; costs are given for {list(costed)}")
            elif rows != layers:
                defects.add(f"network {network.name!r} has {layers} layers but {rows} rows of costs")
        defects.raise_as(InvalidProblemError)

    @property
    def network(self) -> Network:
        """The only network of a problem with one network."""
        if len(self.networks) != 1:
            raise InvalidProblemError(f"the problem has {len(self.networks)} networks, not one")
        return self.networks[0]

    @cached_property
    def chain(self) -> Chain:
        """Integer tables of a problem with one network."""
        return build_chain(self.platform, self.network, self.costs.of(self.network.name))

    @cached_property
    def view(self) -> PlanView:
        """What rules of this problem can speak about."""
        return PlanView(self.network, self.chain)

    @cached_property
    def fingerprint(self) -> str:
        """Twelve hexadecimal digits that change whenever anything in the problem changes."""
        text = repr([getattr(self, field.name) for field in fields(self)])
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def expression_rules(self) -> tuple[Rule, ...]:
        """The rules that exact backends lower."""
        return tuple(rule for rule in self.rules if isinstance(rule, Rule))

    @property
    def opaque_rules(self) -> tuple[OpaqueRule, ...]:
        """The rules that can only be checked on finished plans."""
        return tuple(rule for rule in self.rules if isinstance(rule, OpaqueRule))

    @cached_property
    def features(self) -> frozenset[Feature]:
        """What this instance asks of a backend."""
        tables = self.costs.networks
        present = {
            Feature.UNSUPPORTED_LAYERS: any(None in row for t in tables for row in t.layer_us),
            Feature.TRANSFERS: any(t.transfer_in_us or t.transfer_out_us for t in tables),
            Feature.UNIT_CONFLICTS: bool(self.platform.conflicts),
            Feature.UNIT_MEMORY: any(unit.memory_bytes is not None for unit in self.platform.units),
            Feature.DEVICE_MEMORY: self.platform.memory_bytes is not None,
            Feature.CUT_RESTRICTIONS: any(network.forbidden_cuts for network in self.networks),
            Feature.LIMITS: self.limits != Limits(),
            Feature.RULES: bool(self.expression_rules),
            Feature.OPAQUE_RULES: bool(self.opaque_rules),
            Feature.SEVERAL_NETWORKS: len(self.networks) > 1,
        }
        return frozenset(feature for feature, there in present.items() if there)

    def with_rules(self, *rules: RuleFunction | AnyRule) -> Problem:
        """Return the same problem with more rules.

        Parameters
        ----------
        rules
            Rule functions (`PlanView` -> expression), ready-made rules, or `OpaqueRule`s.

        Raises
        ------
        ExpressionError, InvalidProblemError
            A rule cannot be built, or a name is taken.
        """
        built = tuple(build_rule(rule, self.view) for rule in rules)
        return replace(self, rules=self.rules + built)

    def with_objective(self, objective: Objective | str) -> Problem:
        """Return the same problem with another objective, given as a value or a text."""
        wanted = Objective.parse(objective) if isinstance(objective, str) else objective
        return replace(self, objective=wanted)

    def with_limits(self, **limits: int | None) -> Problem:
        """Return the same problem with some filters changed; names as in `Limits`."""
        return replace(self, limits=replace(self.limits, **limits))
