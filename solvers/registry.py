"""Backends by name: those for every formulation here, those for one with its `Family`, others as plug-ins."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..formulations.availability import Availability
from ..formulations.errors import (
    BackendError,
    BackendFailedError,
    UnknownBackendError,
    UnsupportedFeatureError,
)
from ..formulations.judge import check, rank_key, score
from ..formulations.plugins import (
    REFERENCE_FORMS,
    PluginError,
    entry_point_names,
    is_reference,
    load_entry_point,
    load_reference,
    reference_hint,
)
from ..formulations.problem import Feature, Problem
from ..formulations.validation import meant, shown
from .families import Family, Translation, families
from .protocol import (
    Backend,
    Capabilities,
    Claim,
    Guarantee,
    RuleHandling,
    SolveOptions,
    SolveStatus,
    Support,
    Warmed,
    handling_of,
)

ENTRY_POINT_GROUP = "gapless.backends"

_BUILT_IN = ("native", "exhaustive", "cpsat", "z3", "pulp", "pulp-cbc")


def _built_in(name: str) -> Backend:
    """Return a backend of `_BUILT_IN`; no other is loaded."""
    found: type[Backend]
    match name:
        case "native":
            from .native import NativeBackend as found
        case "exhaustive":
            from .exhaustive import ExhaustiveBackend as found
        case "cpsat":
            from .exact.cp_sat import CpSatBackend as found
        case "z3":
            from .exact.z3 import Z3Backend as found
        case "pulp":
            from .exact.pulp import PulpBackend as found
        case _:
            from .exact.pulp import PulpCbcBackend as found
    return found()


def backend_names() -> tuple[str, ...]:
    """Return the names of all known backends: the built-in ones first, then entry points."""
    return tuple(dict.fromkeys((*_BUILT_IN, *_of_families(), *entry_point_names(ENTRY_POINT_GROUP))))


def get_backend(name: str) -> Backend:
    """Return a new backend by name; its solver is not imported yet. What it can do counts `translated`.

    `name`: a registered name, or "module:Class" or "file.py:Class" of a backend of your own.
    Raises UnknownBackendError: there is no such name, or a backend of your own could not be loaded.
    Raises BackendFailedError: an entry point could not be loaded.
    """
    return _built_in(name) if name in _BUILT_IN else translated(_named(name))


def _named(name: str) -> Backend:
    """Return a backend that is not built in."""
    family = _of_families().get(name)
    if family is not None:
        return next(made for found in family.classes() if (made := found()).name == name)
    if name in entry_point_names(ENTRY_POINT_GROUP):
        try:
            return _checked(load_entry_point(ENTRY_POINT_GROUP, name, what="backend", like=Backend), name)
        except PluginError as error:
            raise BackendFailedError(str(error)) from error
    if is_reference(name):
        try:
            return _checked(load_reference(name, what="backend", like=Backend), name)
        except PluginError as error:
            raise UnknownBackendError(str(error)) from error
    own = f"`gapless doctor` lists them; one of your own is {REFERENCE_FORMS}"
    hint = reference_hint(name) or meant(name, backend_names(), listed_by=own)
    raise UnknownBackendError(f"no backend {shown(name)}; {hint}")


def support_of(name: str, problem: Problem) -> Support | None:
    """Return what a backend can do for problems like this one; None: nothing, or it is not known here."""
    try:
        return get_backend(name).capabilities.support(problem)
    except BackendError:
        return None


def get_backends(backends: Iterable[str | Backend]) -> list[Backend]:
    """Return backends of which some are given by name; errors as for `get_backend`."""
    found = []
    for each in backends:
        if not isinstance(each, str) and not hasattr(each, "capabilities"):
            raise UnknownBackendError(f"backend is {each!r}, must be a name such as 'native', or a backend")
        found.append(get_backend(each) if isinstance(each, str) else translated(each))
    return found


def translated(backend: Backend) -> Backend:
    """Return a backend that also answers problems of which its plans are plans, too (`Translation`)."""
    can = backend.capabilities
    for name, family in families().items() if can.others is None else ():
        if name in can.formulations and family.translation is not None:
            translation = family.translation()
            if translation.formulation not in can.formulations:
                return _Translated(backend, name, translation)
    return backend


class _Translated:
    """A backend that is asked about problems of another formulation in the words of its own.

    The judge plays its plans as those of the other formulation. What it proves is about a part of these
    only, so that none of it is claimed.
    """

    def __init__(self, backend: Backend, own: str, translation: Translation) -> None:
        self._backend, self._own, self._translation = backend, own, translation
        self.name, can = backend.name, backend.capabilities
        support = Support(
            guarantee=Guarantee.HEURISTIC,
            rules=RuleHandling.CHECKED,
            opaque_rules=RuleHandling.CHECKED,
            searches=translation.searches,
        )
        self.capabilities = replace(can, formulations={**can.formulations, translation.formulation: support})

    def availability(self) -> Availability:
        """Return what the backend says."""
        return self._backend.availability()

    def warm_up(self, formulation: str) -> None:
        """Load what the backend needs for its own problems."""
        if isinstance(self._backend, Warmed):
            self._backend.warm_up(self._own if self._foreign(formulation) else formulation)

    def solve(self, problem: Problem, options: SolveOptions) -> Claim:
        """Ask the backend, and keep those of its plans that are valid here."""
        if not self._foreign(problem.formulation.name):
            return self._backend.solve(problem, options)
        own, publish = self._translation.problem(problem), options.publish
        missing = self._backend.capabilities.missing(own)
        if Feature.RULES in missing:  # then they are only checked
            own = replace(own, rules=())
            missing = self._backend.capabilities.missing(own)
        if missing:
            raise UnsupportedFeatureError(
                f"backend {self.name!r} does not handle {', '.join(sorted(missing))}", missing
            )
        asked = replace(  # what is proved is about a term of the problem here
            options, at_least=None, publish=lambda claim: publish(self._claim(problem, claim))
        )
        return self._claim(problem, self._backend.solve(own, asked))

    def _foreign(self, formulation: str) -> bool:
        return formulation == self._translation.formulation

    def _claim(self, problem: Problem, claim: Claim) -> Claim:
        """Return what a claim says about the problem that was asked."""
        plans = [self._translation.plan(plan) for plan in claim.plans]
        checked = [(plan, check(problem, plan)) for plan in plans]
        broken = [violations[0] for _, violations in checked if violations]
        judged = [(plan, score(problem, plan)) for plan, violations in checked if not violations]
        found = sorted(judged, key=lambda entry: rank_key(problem, entry[1]))
        reason = {"reason": f"{broken[0].rule}: {broken[0].message}"} if broken and not found else {}
        return Claim(
            status=SolveStatus.FEASIBLE if found else SolveStatus.NO_SOLUTION,
            stop=claim.stop,
            plans=tuple(plan for plan, _ in found),
            values=found[0][1].values(problem.objective.terms) if found else None,
            handling=handling_of(problem, self.capabilities),
            statistics={**claim.statistics, **reason},
        )


def _of_families() -> dict[str, Family]:
    return {name: family for family in families().values() for name in family.backends}


def _checked(backend: Backend, name: str) -> Backend:
    """Return a backend of somebody else if what every caller reads from it is of the right kind."""
    if not isinstance(backend.name, str) or not backend.name:
        raise PluginError(f"backend {shown(name)} cannot be used: its name is {backend.name!r}, not a text")
    if not isinstance(backend.capabilities, Capabilities):
        kind = type(backend.capabilities).__name__
        raise PluginError(
            f"backend {shown(name)} cannot be used: its capabilities are {kind}, not Capabilities"
        )
    return backend
