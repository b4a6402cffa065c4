"""Plans for other runtimes: what `gapless export` does and says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ...answers.words import listed
from ...api.execution import models_for
from ...api.exporting import export
from ...api.models import opening_notes, parse_places
from ...executor.export.folder import Exported
from ...executor.export.kinds import ExportKind
from ...files.plans import NamedPlan
from ...formulations.deployment import Deployment
from ...formulations.errors import InvalidInputError
from ...formulations.operation import operation_of
from ...formulations.problem import Problem


def export_plan(
    problem: Problem,
    plan: NamedPlan,
    *,
    to: ExportKind,
    out: Path,
    at: Sequence[str] | None = None,
    engine: str | None = None,
    check: bool = True,
) -> Exported:
    """Export what the user named as a plan.

    `at`: where models lie now, as "OLD=NEW".
    """
    operation_of(problem).check_executable(problem)
    deployment = plan.deployed(problem)
    _require_models(problem, deployment)
    models = models_for(problem, at=parse_places(at))
    exported = export(problem, deployment, to=to, out=out, models=models, engine=engine, check=check)
    notes = *opening_notes(models.values()), *_turns_not_taken(problem, deployment), *exported.notes
    return replace(exported, notes=notes)


def _turns_not_taken(problem: Problem, deployment: Deployment) -> Iterator[str]:
    """Yield which units take turns, which an exported plan does not know."""
    turns = dict(zip(deployment.units, problem.platform.turns(deployment.units), strict=True))
    for first in dict.fromkeys(turns.values()):
        own = [unit for unit in turns if turns[unit] == first]
        if len(own) > 1:
            yield f"{listed(own)} take turns in gapless; what is exported runs them at once"


def _require_models(problem: Problem, deployment: Deployment) -> None:
    for network in problem.networks:
        if network.name in deployment.networks and not network.models:
            raise InvalidInputError(
                f"network {network.name!r} is a table without a model, so there is nothing to export; "
                "profile a model first (`gapless profile model.onnx`), and plan for that"
            )


def notes_of(exported: Exported) -> Iterator[str]:
    """Yield what a user should know of an export."""
    manifest = exported.manifest
    yield from exported.notes
    yield manifest.numbers
    measured = manifest.predicted.engine
    if measured and measured.partition(" ")[0] != manifest.engine:
        yield f"the times were measured with {measured}; {manifest.engine} will take others"
    for unit in manifest.units:
        if unit.session is None:
            yield (
                f"{unit.name} asks for the backend {unit.backend!r}, which {manifest.engine} does not have: "
                "run.py cannot run its chunks, another runtime may"
            )
        if unit.quota_permille is not None:
            yield (
                f"{unit.name} is emulated with {unit.quota_permille / 10:g} % of the time of its cores; "
                "run.py sets no quotas"
            )
