"""A problem: everything a backend needs to know, as one frozen value."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Any

from .canonical import digest
from .costs import CostTable, Interference, shape_of
from .errors import InvalidInputError, InvalidProblemError
from .expr import from_data, to_data, variables
from .formulation import Formulation
from .hardware import Platform
from .limits import Limits
from .network import Network
from .parts import Part, parts_of, set_defects, widened
from .plan import Plan
from .printing import html_table, shortened
from .registry import formulation_named, formulation_names, formulation_of
from .rules import AnyRule, OpaqueRule, Rule, RuleFunction, build_rule
from .scores import Score
from .terms import PERIOD, Objective, TermInfo, special_names
from .validation import Defects, meant, near, shown


class Feature(StrEnum):
    """What an instance asks of a backend; computed from the instance, never declared.

    A formulation can have further ones of its own (`Formulation.features`).
    """

    UNSUPPORTED_LAYERS = "unsupported_layers"
    TRANSFERS = "transfers"
    UNIT_CONFLICTS = "unit_conflicts"
    UNIT_MEMORY = "unit_memory"
    DEVICE_MEMORY = "device_memory"
    CUT_RESTRICTIONS = "cut_restrictions"
    LIMITS = "limits"
    RULES = "rules"
    OPAQUE_RULES = "opaque_rules"


FEATURES = frozenset(map(str, Feature))
"""What problems of every formulation can ask."""

_MOST_NETWORKS = 6
"""Columns of the table that notebooks show."""


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
    data
        What the formulation asks beyond that, e.g. the requests of a workload: a value whose class names
        its formulation. None: the formulation that needs no data.
    interference
        How much units slow each other down while several run, or None; for formulations that know of it.
    co_run_costs
        Tables for plans on several units: more company, other times (formulations, section 2). `costs` is
        then for plans on one unit. None: `costs` holds for all plans. Either one table for each number of
        units from 2 on, or one for each *set* of units that can run at once, whose columns are these units.

        The judge reads the table of the units that a plan uses. Encoders and native algorithms never see
        more than one table: the session has each part "exactly k units", or "exactly these units", solved
        with its table and merges the answers (`parts`), which is exact, because every plan is in one part.
    """

    platform: Platform
    networks: tuple[Network, ...]
    costs: CostTable
    objective: Objective = Objective()
    limits: Limits = Limits()
    rules: tuple[AnyRule, ...] = ()
    data: Any = None
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
        self._check_objective(defects)
        self._check_co_run(defects)
        if self.interference is not None and self.interference.units != self.platform.unit_names:
            defects.add(
                f"the interference is for the units {list(self.interference.units)}, "
                f"the platform has {list(self.platform.unit_names)}"
            )
        self._check_slices(defects)
        costed = {costs.network: len(costs.layer_us) for costs in self.costs.networks}
        for network in self.networks:
            rows, layers = costed.get(network.name), len(network.layers)
            if rows is None:
                defects.add(f"network {network.name!r} has no costs; costs are given for {list(costed)}")
            elif layers > self.formulation.most_layers:
                defects.add(
                    f"network {network.name!r} has {layers} layers, {self.formulation.label} take at most "
                    f"{self.formulation.most_layers}"
                )
            elif rows != layers:
                defects.add(f"network {network.name!r} has {layers} layers but {rows} rows of costs")
            if network.states and not self.formulation.recurrent:
                defects.add(
                    f"network {network.name!r} keeps states (--state {network.states[0]}), of which "
                    f"{self.formulation.label} know nothing: plan a stream of that network alone"
                )
        for text in self.formulation.defects(self):
            defects.add(text)
        defects.raise_as(InvalidProblemError)

    def _check_slices(self, defects: Defects) -> None:
        layers = {network.name: len(network.layers) for network in self.networks}
        for entry in () if self.interference is None else self.interference.networks:
            has = layers.get(entry.network)
            if has is not None and entry.slices and entry.slices[-1].stop != has:
                defects.add(
                    f"the slices of network {entry.network!r} in the interference end at layer "
                    f"{entry.slices[-1].stop}, it has {has} layers"
                )

    def _check_objective(self, defects: Defects) -> None:
        formulation = self.formulation
        for text in unknown_terms(self.objective, formulation):
            defects.add(text)
        wrong = [name for name in self.limits.in_use() if name not in formulation.limits]
        if wrong:
            known = ", ".join(formulation.limits) or "none"
            hint = formulation.hint_on_limits(wrong)
            known += f"; {hint}" if hint else ""
            defects.add(f"{', '.join(wrong)} means nothing for {formulation.label}; limits are {known}")
        spoken = {*self.limits.in_use(), *(n for r in self.expression_rules for n, _ in variables(r.expr))}
        for term, reason in formulation.unknown(self).items():
            field = formulation.terms[term].field
            if term in self.objective.terms or spoken & {field, f"max_{field}"}:
                defects.add(reason)

    def _check_co_run(self, defects: Defects) -> None:
        tables = self.co_run_costs
        if tables is None:
            return
        if not self.formulation.co_run_costs:
            defects.add(
                f"{self.formulation.label} take one table of costs (--costs heavy or --costs isolated); "
                "co-run costs, one table for each number of used units, are for one network alone"
            )
            return
        if self.by_set:
            for text in set_defects(self.costs, tables, self.platform):
                defects.add(text)
            return
        if len(tables) != len(self.platform.units) - 1:
            defects.add(
                f"co_run_costs has {len(tables)} tables, needs one for each number of units from 2 to "
                f"{len(self.platform.units)}, or one for each set of units"
            )
        for used, table in enumerate(tables, start=2):
            if shape_of(table) != shape_of(self.costs):
                defects.add(
                    f"the table for {used} units differs from costs in units, batch, networks, or in which "
                    "layers run where"
                )

    def __repr__(self) -> str:
        return f"<Problem {shortened(self._words)}>"

    def _repr_html_(self) -> str:
        """Return what notebooks show: how long each network takes on each unit."""
        shown = self.networks[:_MOST_NETWORKS]
        times = [_whole_ms(self.costs.of(network.name).layer_us) for network in shown]
        rows = [
            [unit.name, str(unit.kind), *cells]
            for unit, *cells in zip(self.platform.units, *times, strict=True)
        ]
        notes = ["time of all layers of a network on one unit; -: it cannot run all of them"]
        notes += [f"{len(shown)} of {len(self.networks)} networks are shown"] * (
            len(self.networks) > len(shown)
        )
        return html_table(self._words, ["unit", "kind", *(network.name for network in shown)], rows, notes)

    @property
    def _words(self) -> str:
        """What is asked of what, on which units, in a line."""
        layers = sum(len(network.layers) for network in self.networks)
        requests = len(self.formulation.arrivals(self))
        parts = [f"{requests} requests"] if requests else []
        parts += [f"{layers} layers", f"{len(self.platform.units)} units", f"objective {self.objective}"]
        parts += [f"{len(self.rules)} rules"] if self.rules else []
        names = ", ".join(network.name for network in self.networks)
        return f"{names} on {self.platform.name}: {', '.join(parts)}"

    @cached_property
    def formulation(self) -> Formulation[Any, Any]:
        """What kind of problem it is."""
        return formulation_of(self.data)

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

    @property
    def ranking(self) -> tuple[str, ...]:
        """All terms that order plans: those of the objective, then the tie-break without repetitions."""
        terms = self.objective.terms
        return terms + tuple(term for term in self.formulation.tie_break if term not in terms)

    @cached_property
    def known_terms(self) -> Mapping[str, TermInfo]:
        """The terms of its formulation that its data tell: energy where there are powers."""
        unknown, terms = self.formulation.unknown(self), self.formulation.terms
        return {name: info for name, info in terms.items() if name not in unknown}

    @cached_property
    def plan_class(self) -> str:
        """Which plans are looked at: what proofs and bounds are about; it stands behind "among"."""
        return self.formulation.plan_class(self)

    @cached_property
    def tables(self) -> Any:
        """The integer tables of its formulation."""
        return self.formulation.tables(self)

    @cached_property
    def judged(self) -> dict[Plan, Score]:
        """The latest scores of plans: the judge keeps a few, because some take seconds."""
        return {}

    @cached_property
    def view(self) -> Any:
        """What rules can speak about."""
        return self.formulation.view(self)

    @cached_property
    def unit_counts(self) -> tuple[int, ...]:
        """Numbers of units that a plan may use by the limits; all of them if the limits leave none."""
        most = len(self.platform.units)
        least, limit = self.limits.min_units or 1, self.limits.max_units
        found = range(max(1, least), min(most, most if limit is None else limit) + 1)
        return tuple(found) or tuple(range(1, most + 1))

    @property
    def by_set(self) -> bool:
        """Whether costs depend on which units a plan uses, and not on their number alone."""
        return any(table.units != self.platform.unit_names for table in self.co_run_costs or ())

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """What its plans fall into, each with one table of costs: those that limits leave, or all if none."""
        return tuple(parts_of(self.costs, self.co_run_costs or (), self.platform, self.unit_counts))

    def using(self, units: Collection[str] | int) -> Problem:
        """Return the problem of the plans that use exactly some units, or so many: with one table."""
        used = units if isinstance(units, int) else len(units)
        limits = self.limits
        least = max(used, limits.min_units or 0)
        most = used if limits.max_units is None else min(used, limits.max_units)
        limited = replace(self, limits=replace(limits, min_units=least, max_units=most))
        return limited.with_costs(self._table(units))

    def _table(self, units: Collection[str] | int) -> CostTable:
        """Return the table for plans on some units; where there is none for them, that for one unit."""
        if self.co_run_costs is None:
            return self.costs
        if not self.by_set:
            used = units if isinstance(units, int) else len(units)
            return (self.costs, *self.co_run_costs)[used - 1]
        if isinstance(units, int):
            if units != 1:
                raise InvalidInputError(f"costs depend on which units are used: say which, not {units}")
            return self.costs
        found = (table for table in self.co_run_costs if set(table.units) == set(units))
        return next((widened(table, self.costs) for table in found), self.costs)

    def with_costs(self, costs: CostTable, co_run_costs: tuple[CostTable, ...] | None = None) -> Problem:
        """Return the same problem with other costs."""
        return self._with_rules_of(replace(self, costs=costs, co_run_costs=co_run_costs, rules=()))

    def with_data(self, data: Any) -> Problem:
        """Return the same problem with other data, whose formulation has the quantities of its rules."""
        return self._with_rules_of(replace(self, data=data, rules=()))

    def _with_rules_of(self, bare: Problem) -> Problem:
        # Quantities know their bounds, which depend on the table and on the formulation.
        variables = bare.formulation.variables(bare)
        rules = (
            replace(rule, expr=from_data(to_data(rule.expr), variables.find))
            if isinstance(rule, Rule)
            else rule
            for rule in self.rules
        )
        return replace(bare, rules=tuple(rules))

    def charged(self, plan: Plan) -> Problem:
        """Return the problem with the one table that a plan is charged by: that of its units."""
        units = frozenset(chunk.unit for chunk in plan.chunks)
        if self.co_run_costs is None or not units <= set(self.platform.unit_names):
            return self
        key = units if self.by_set else len(units)
        if key not in self._charged:
            # Rules are evaluated on plans only: the bounds that their quantities have do not matter.
            platform = self.platform.without_turns() if self.by_set else self.platform
            self._charged[key] = replace(self, platform=platform, costs=self._table(units), co_run_costs=None)
        return self._charged[key]

    @cached_property
    def _charged(self) -> dict[frozenset[str] | int, Problem]:
        return {}

    @cached_property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits that change whenever anything in the problem changes.

        They are a digest of the problem as JSON (`canonical.py`); opaque rules count by their code.
        """
        return digest(self)

    @property
    def expression_rules(self) -> tuple[Rule, ...]:
        """The rules that exact backends lower."""
        return tuple(rule for rule in self.rules if isinstance(rule, Rule))

    @property
    def opaque_rules(self) -> tuple[OpaqueRule, ...]:
        """The rules that can only be checked on finished plans."""
        return tuple(rule for rule in self.rules if isinstance(rule, OpaqueRule))

    @property
    def limited_terms(self) -> tuple[str, ...]:
        """The terms that have a limit."""
        fields, limits = self.formulation.fields, self.limits.in_use()
        return tuple(term for term, field in fields.items() if f"max_{field}" in limits)

    @cached_property
    def opaque_demands(self) -> frozenset[str]:
        """Names of what only finished plans can be asked.

        These are the opaque rules, and the limits and rules about quantities that models do not define
        (`Formulation.unmodelled`).
        """
        names = self.formulation.unmodelled
        found = {rule.name for rule in self.opaque_rules}
        found |= {limit for limit in self.limits.in_use() if limit.removeprefix("max_") in names}
        for rule in self.expression_rules:
            if names and any(name in names for name, _ in variables(rule.expr)):
                found.add(rule.name)
        return frozenset(found)

    @cached_property
    def features(self) -> frozenset[str]:
        """What this instance asks of a backend."""
        tables = [t for costs in (self.costs, *(self.co_run_costs or ())) for t in costs.networks]
        present = {
            Feature.UNSUPPORTED_LAYERS: self.by_set or any(None in row for t in tables for row in t.layer_us),
            Feature.TRANSFERS: any(t.transfer_in_us or t.transfer_out_us for t in tables),
            Feature.UNIT_CONFLICTS: bool(self.platform.conflicts),
            Feature.UNIT_MEMORY: any(unit.memory_bytes is not None for unit in self.platform.units),
            Feature.DEVICE_MEMORY: self.platform.memory_bytes is not None,
            Feature.CUT_RESTRICTIONS: any(network.forbidden_cuts for network in self.networks),
            Feature.LIMITS: self.limits != Limits() or self.co_run_costs is not None,
            Feature.RULES: bool(self.expression_rules),
            Feature.OPAQUE_RULES: bool(self.opaque_demands),
        }
        found = frozenset(str(feature) for feature, there in present.items() if there)
        return found | self.formulation.needs(self)

    def with_rules(self, *rules: RuleFunction | AnyRule) -> Problem:
        """Return the same problem with more rules.

        Parameters
        ----------
        rules
            Rule functions (from `Problem.view` to an expression), ready-made rules, or `OpaqueRule`s.

        Raises
        ------
        ExpressionError, InvalidProblemError
            A rule cannot be built, or a name is taken.
        """
        if not rules:
            return self
        built = tuple(build_rule(rule, self.view) for rule in rules)
        return replace(self, rules=self.rules + built)

    def with_objective(self, objective: Objective | str) -> Problem:
        """Return the same problem with another objective, given as a value or a text."""
        wanted = Objective.parse(objective) if isinstance(objective, str) else objective
        wrong = list(unknown_terms(wanted, self.formulation))
        if wrong:
            raise InvalidProblemError("; ".join(wrong))
        return replace(self, objective=wanted)

    def with_limits(self, **limits: int | None) -> Problem:
        """Return the same problem with some filters changed; names as in `Limits`."""
        return replace(self, limits=replace(self.limits, **limits))


def unknown_terms(objective: Objective, formulation: Formulation[Any, Any]) -> Iterator[str]:
    """Yield what to say about the terms of an objective that a formulation does not have."""
    asked = dict.fromkeys((*objective.terms, *filter(None, (objective.present_by,))))
    unknown = [_unknown(term, formulation) for term in asked if term not in formulation.terms]
    if unknown:
        yield f"objective {shown(str(objective))}: {'; '.join(unknown)}"
    if objective.period_slack_permille is not None and PERIOD not in formulation.terms:
        yield f"the slack mode needs a period, which {formulation.label} do not have"


def _unknown(term: str, formulation: Formulation[Any, Any]) -> str:
    names = (*formulation.terms, *special_names(formulation.terms))
    listed = f"use one or more of {', '.join(names)}"
    if any(_has_term(name, term) for name in formulation_names()):
        return f"{term!r} means nothing for {formulation.label}; {listed}"
    return f"{shown(term)} is not known; {meant(term, names) if near(term, names) else listed}"


def _has_term(formulation: str, term: str) -> bool:
    try:
        return term in formulation_named(formulation).terms
    except InvalidProblemError:  # a plug-in that cannot be loaded is not what this is about
        return False


def _whole_ms(layer_us: Sequence[Sequence[int | None]]) -> list[str]:
    """Return by unit how long all layers take there, in words."""
    sums = (None if None in column else sum(filter(None, column)) for column in zip(*layer_us, strict=True))
    return ["-" if time_us is None else f"{time_us / 1000:,.3f} ms" for time_us in sums]
