"""Comparisons over many problems, with progress on standard error."""

from __future__ import annotations

from collections.abc import Sequence

from ...solvers.protocol import SolveOptions
from ...sweeps.contest import InstanceComparison, run_contest, usual_backends
from ...sweeps.folder import SweepOptions
from ...sweeps.instances import instances_of
from ..base.progress import StepLine


def contest_watched(
    instances: str,
    backends: Sequence[str] | None,
    more: str | None,
    *,
    objective: str,
    options: SolveOptions,
    kept: SweepOptions,
) -> InstanceComparison:
    """Compare with progress; parameters as for `run_contest`, and one more backend or None."""
    found = instances_of(instances, objective)
    if more is not None:
        usual = usual_backends(problem for _, problem in found.problems)
        backends = [*(usual if backends is None else backends), more]
    with StepLine() as line:
        return run_contest(found, backends, options, kept, line.report)
