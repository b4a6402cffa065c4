"""Ready-made rules about pipelines over devices."""

from __future__ import annotations

from ..expr import BoolExpr
from ..rules import RuleFunction, named
from .view import PipelineView


def most_pipelines(count: int) -> RuleFunction:
    """Return the rule "there are at most a given number of pipelines"."""
    text = f"at most {count} pipelines"
    return named(f"most_pipelines({count})", text, lambda view: view.pipelines() <= count)


def least_pipelines(count: int) -> RuleFunction:
    """Return the rule "there are at least a given number of pipelines"."""
    text = f"at least {count} pipelines"
    return named(f"least_pipelines({count})", text, lambda view: view.pipelines() >= count)


def same_pipeline(one: str, other: str) -> RuleFunction:
    """Return the rule "these two devices are in one pipeline", both in use."""
    text = f"{one!r} and {other!r} are in one pipeline"
    return named(f"same_pipeline({one}, {other})", text, lambda view: view.same_pipeline(one, other))


def separate(one: str, other: str) -> RuleFunction:
    """Return the rule "these two devices are never in one pipeline"."""
    text = f"{one!r} and {other!r} are never in one pipeline"
    return named(f"separate({one}, {other})", text, lambda view: ~view.same_pipeline(one, other))


def never_sends(source: str, target: str) -> RuleFunction:
    """Return the rule "the first device does not send to the second": that link is not used."""
    text = f"{source!r} does not send to {target!r}"
    return named(f"never_sends({source}, {target})", text, lambda view: ~view.sends(source, target))


def begins(device: str) -> RuleFunction:
    """Return the rule "a pipeline with this device begins there"."""
    text = f"a pipeline with {device!r} begins there"

    def build(view: PipelineView) -> BoolExpr:
        return view.uses(device).implies(view.on(0, device))

    return named(f"begins({device})", text, build)


def ends(device: str) -> RuleFunction:
    """Return the rule "a pipeline with this device ends there"."""
    text = f"a pipeline with {device!r} ends there"

    def build(view: PipelineView) -> BoolExpr:
        return view.uses(device).implies(view.on(len(view.layers) - 1, device))

    return named(f"ends({device})", text, build)


def traffic_cap(*, most_bytes: int) -> RuleFunction:
    """Return the rule "one item sends at most a given number of bytes over links"."""
    text = f"one item sends at most {most_bytes} bytes"
    return named(f"traffic_cap({most_bytes})", text, lambda view: view.traffic_bytes() <= most_bytes)


def energy_cap(*, most_nj: int) -> RuleFunction:
    """Return the rule "one item takes at most a given number of nanojoules to compute"."""
    text = f"one item takes at most {most_nj} nJ"
    return named(f"energy_cap({most_nj})", text, lambda view: view.energy_nj() <= most_nj)
