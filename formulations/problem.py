"""A problem: everything a backend needs to know, as one frozen value."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from functools import cached_property

from .chain import Chain, build_chain
from .costs import CostTable, Interference, shape_of
from .errors import InvalidProblemError
from .expr_json import chain_variables, from_data, to_data
from .flow_shop.tables import FlowShop
from .flow_shop.view import WorkloadView
from .flow_shop.workload import Execution, LoadPolicy, Mode, RequestOrder, Workload
from .hardware import Platform
from .network import Network
from .objective import CHAIN_TERMS, WORKLOAD_TERMS, Limits, Objective
from .plan import Plan
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
    WORKLOAD = "workload"
    FREE_ORDER = "free_order"
    INTERFERENCE = "interference"
    COLUMNS = "columns"
    STREAM = "stream"
    ARRIVALS = "arrivals"
    DEADLINES = "deadlines"
    TASK_SLOTS = "task_slots"
    RUNNING_WEIGHTS = "running_weights"


WORKLOAD_FEATURES = frozenset(
    {
        Feature.WORKLOAD,
        Feature.FREE_ORDER,
        Feature.INTERFERENCE,
        Feature.COLUMNS,
        Feature.STREAM,
        Feature.ARRIVALS,
        Feature.DEADLINES,
        Feature.TASK_SLOTS,
        Feature.RUNNING_WEIGHTS,
    }
)
"""What only a problem with a workload can ask."""

CHAIN_FEATURES = frozenset(Feature) - WORKLOAD_FEATURES
"""What a problem with one network can ask."""


@dataclass(frozen=True, kw_only=True)  # no slots: the computed properties below are kept
class Problem:
    """Networks, the units they may run on, what that costs, and what is wanted.

    Attributes
    ----------
    platform
        The units.
    networks
        The networks to place; for several of them a plan needs a workload.
    costs
        Time of each layer on each unit; its columns follow the units of the platform.
    objective
        What to minimise.
    limits
        Filters.
    rules
        Constraints of the user.
    workload
        The requests that share the units; None: one endless stream of requests of one network, all
        alike.
    interference
        How much units slow each other down while the requests of a workload run, or None.
    co_run_costs
        Tables for plans that use 2, 3, ... units: more company, other times (formulations, section 2).
        `costs` is then for plans on one unit. None: `costs` holds for all plans.

        The judge reads the table of the number of units that a plan uses. Encoders and native
        algorithms never see more than one table: the session has each problem "exactly k units" solved
        with the table of k and merges the answers, which is exact, because every plan belongs to one k.
    """

    platform: Platform
    networks: tuple[Network, ...]
    costs: CostTable
    objective: Objective = Objective()
    limits: Limits = Limits()
    rules: tuple[AnyRule, ...] = ()
    workload: Workload | None = None
    interference: Interference | None = None
    co_run_costs: tuple[CostTable, ...] | None = None

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
        self._check_workload(defects)
        self._check_co_run(defects)
        costed = {costs.network: len(costs.layer_us) for costs in self.costs.networks}
        for network in self.networks:
            rows, layers = costed.get(network.name), len(network.layers)
            if rows is None:
                defects.add(f"network {network.name!r} has no costs; costs are given for {list(costed)}")
            elif rows != layers:
                defects.add(f"network {network.name!r} has {layers} layers but {rows} rows of costs")
        defects.raise_as(InvalidProblemError)

    def _check_workload(self, defects: Defects) -> None:
        known = WORKLOAD_TERMS if self.workload else CHAIN_TERMS
        wrong = [term for term in self.objective.terms if term not in known]
        if wrong:
            where = "with a workload" if self.workload else "without a workload"
            defects.add(
                f"the objective {', '.join(wrong)} means nothing {where}; use {', '.join(sorted(known))}"
            )
        if self.interference is not None and self.interference.units != self.platform.unit_names:
            defects.add(
                f"the interference is for the units {list(self.interference.units)}, "
                f"the platform has {list(self.platform.unit_names)}"
            )
        if self.workload is not None:
            networks = {network.name for network in self.networks}
            for request in self.workload.requests:
                if request.network not in networks:
                    text = f"is of network {request.network!r}, the problem has {sorted(networks)}"
                    defects.add(f"request {request.name!r} {text}")

    def _check_co_run(self, defects: Defects) -> None:
        tables = self.co_run_costs
        if tables is None:
            return
        if self.workload is not None or len(self.networks) != 1:
            defects.add(
                "co-run costs are for one network without a workload; with a workload, chunks slow each "
                "other down by its interference: give one table of costs (--costs heavy or --costs isolated)"
            )
        elif len(tables) != len(self.platform.units) - 1:
            defects.add(
                f"co_run_costs has {len(tables)} tables, needs one for each number of units from 2 to "
                f"{len(self.platform.units)}"
            )
        for used, table in enumerate(tables, start=2):
            if shape_of(table) != shape_of(self.costs):
                defects.add(
                    f"the table for {used} units differs from costs in units, batch, networks, or in which "
                    "layers run where"
                )

    @property
    def network(self) -> Network:
        """The only network of a problem with one network."""
        if len(self.networks) != 1:
            raise InvalidProblemError(
                f"the problem has {len(self.networks)} networks and no workload: say which requests come "
                f'(--workload "{",".join(network.name for network in self.networks[:3])}", or '
                "gapless.with_workload)"
            )
        return self.networks[0]

    @cached_property
    def chain(self) -> Chain:
        """Integer tables of a problem with one network."""
        return build_chain(self.platform, self.network, self.costs.of(self.network.name))

    @cached_property
    def unit_counts(self) -> tuple[int, ...]:
        """Numbers of units that a plan may use by the limits; all of them if the limits leave none."""
        most = len(self.platform.units)
        least, limit = self.limits.min_units or 1, self.limits.max_units
        found = range(max(1, least), min(most, most if limit is None else limit) + 1)
        return tuple(found) or tuple(range(1, most + 1))

    def using(self, units: int) -> Problem:
        """Return the problem of the plans that use exactly so many units: it has one table of costs."""
        limits = self.limits
        table = self.costs if units == 1 or self.co_run_costs is None else self.co_run_costs[units - 2]
        least = max(units, limits.min_units or 0)
        most = units if limits.max_units is None else min(units, limits.max_units)
        return replace(self, limits=replace(limits, min_units=least, max_units=most)).with_costs(table)

    def with_costs(self, costs: CostTable, co_run_costs: tuple[CostTable, ...] | None = None) -> Problem:
        """Return the same problem of one network with other costs."""
        bare = replace(self, costs=costs, co_run_costs=co_run_costs, rules=())
        # Quantities know their bounds, which depend on the table.
        variables = chain_variables(bare.chain)
        rules = (
            replace(rule, expr=from_data(to_data(rule.expr), variables)) if isinstance(rule, Rule) else rule
            for rule in self.rules
        )
        return replace(bare, rules=tuple(rules))

    def chain_of(self, plan: Plan) -> Chain:
        """Return the integer tables that hold for a plan: those of the number of units that it uses."""
        used = len({chunk.unit for chunk in plan.chunks})
        if self.co_run_costs is None or not 2 <= used <= len(self.platform.units):
            return self.chain
        return self._co_run_chains[used - 2]

    @cached_property
    def _co_run_chains(self) -> tuple[Chain, ...]:
        tables = self.co_run_costs or ()
        return tuple(
            build_chain(self.platform, self.network, table.of(self.network.name)) for table in tables
        )

    @cached_property
    def flow_shop(self) -> FlowShop:
        """Integer tables of a problem with a workload."""
        if self.workload is None:
            raise InvalidProblemError("the problem has no workload")
        used = list(dict.fromkeys(request.network for request in self.workload.requests))
        networks = {network.name: network for network in self.networks}
        return FlowShop(
            workload=self.workload,
            units=self.platform.unit_names,
            chains=tuple(build_chain(self.platform, networks[name], self.costs.of(name)) for name in used),
            chain_of=tuple(used.index(request.network) for request in self.workload.requests),
            layer_names=tuple(networks[name].layer_names for name in used),
            boundary_bytes=tuple(networks[name].boundary_bytes for name in used),
            interference=self.interference,
        )

    @cached_property
    def view(self) -> PlanView:
        """What rules of a problem without a workload can speak about."""
        return PlanView(self.network, self.chain)

    @cached_property
    def workload_view(self) -> WorkloadView:
        """What rules of a problem with a workload can speak about."""
        return WorkloadView(self.flow_shop)

    @cached_property
    def fingerprint(self) -> str:
        """Twelve hexadecimal digits that change whenever anything in the problem changes."""
        # Without what is not there: new kinds of fields leave the fingerprints of old problems alone.
        values = (getattr(self, field.name) for field in fields(self))
        text = repr([value for value in values if value is not None])
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
        tables = [t for costs in (self.costs, *(self.co_run_costs or ())) for t in costs.networks]
        present = {
            Feature.UNSUPPORTED_LAYERS: any(None in row for t in tables for row in t.layer_us),
            Feature.TRANSFERS: any(t.transfer_in_us or t.transfer_out_us for t in tables),
            Feature.UNIT_CONFLICTS: bool(self.platform.conflicts),
            Feature.UNIT_MEMORY: any(unit.memory_bytes is not None for unit in self.platform.units),
            Feature.DEVICE_MEMORY: self.platform.memory_bytes is not None,
            Feature.CUT_RESTRICTIONS: any(network.forbidden_cuts for network in self.networks),
            Feature.LIMITS: self.limits != Limits() or self.co_run_costs is not None,
            Feature.RULES: bool(self.expression_rules),
            Feature.OPAQUE_RULES: bool(self.opaque_rules),
        }
        found = frozenset(feature for feature, there in present.items() if there)
        return found if self.workload is None else found | self._workload_features(self.workload)

    def _workload_features(self, workload: Workload) -> frozenset[Feature]:
        present = {
            Feature.WORKLOAD: True,
            Feature.FREE_ORDER: workload.order is RequestOrder.FREE and len(workload.requests) > 1,
            Feature.INTERFERENCE: self.flow_shop.contended,
            Feature.COLUMNS: workload.execution is Execution.COLUMNS,
            Feature.STREAM: workload.mode is Mode.STREAM,
            Feature.ARRIVALS: any(request.arrival_us for request in workload.requests),
            Feature.DEADLINES: any(request.deadline_us for request in workload.requests),
            Feature.TASK_SLOTS: workload.task_slots is not None,
            Feature.RUNNING_WEIGHTS: workload.load_policy is LoadPolicy.RUNNING
            and self.platform.memory_bytes is not None,
        }
        return frozenset(feature for feature, there in present.items() if there)

    def with_rules(self, *rules: RuleFunction | AnyRule) -> Problem:
        """Return the same problem with more rules.

        Parameters
        ----------
        rules
            Rule functions (`PlanView` -> expression, with a workload `WorkloadView` -> expression),
            ready-made rules, or `OpaqueRule`s.

        Raises
        ------
        ExpressionError, InvalidProblemError
            A rule cannot be built, or a name is taken.
        """
        if not rules:
            return self
        view = self.view if self.workload is None else self.workload_view
        built = tuple(build_rule(rule, view) for rule in rules)
        return replace(self, rules=self.rules + built)

    def with_objective(self, objective: Objective | str) -> Problem:
        """Return the same problem with another objective, given as a value or a text."""
        wanted = Objective.parse(objective) if isinstance(objective, str) else objective
        return replace(self, objective=wanted)

    def with_limits(self, **limits: int | None) -> Problem:
        """Return the same problem with some filters changed; names as in `Limits`."""
        return replace(self, limits=replace(self.limits, **limits))
