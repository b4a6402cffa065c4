"""What commands do on the devices of a cluster: profile a network, run a task stream."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...api.cluster_runs import stream_on_cluster
from ...api.engines import resolve_engine
from ...executor.cluster.stream import RunStream
from ...executor.model import Model
from ...files.run import Entry
from ...files.run_files import cluster_profile_texts
from ...formulations.cluster_platform import CLUSTER
from ...formulations.errors import InvalidInputError
from ...formulations.files import load
from ...formulations.task_stream import Task
from ...profiler.clusters.measured import profile_devices
from ...profiler.profile import Profile
from ..base.progress import StepLine
from ..options.cluster import ClusterChoice
from . import measuring


def profile_on(
    model: Model, place: ClusterChoice, file: Path | None, *, engine: str | None, out: Path, entry: Entry
) -> tuple[Profile, list[str]]:
    """Measure a network on every device of a cluster; return the profile, and notes."""
    if file is None:
        raise InvalidInputError(
            "what joins the devices is not said: give --cluster FILE, which `gapless device links` writes"
        )
    platform = load(file, CLUSTER)
    runs = resolve_engine(engine, model)
    with measuring.begun("profile", [model.network], out, entry) as run:
        with StepLine() as line, place.joined(line.report) as cluster:
            found = profile_devices(cluster, model, runs, platform=platform, report=line.report)
        table = found.tables[0].provenance
        notes = run.write(
            cluster_profile_texts(found, platform),
            engine=table.engine,
            units=platform.devices,
            device=table.device,
        )
    return found, notes


def stream_on(tasks: Sequence[Task], place: ClusterChoice, *, engine: str | None, check: bool) -> RunStream:
    """Run networks one after the other on a cluster, with progress; errors as for `stream_on_cluster`."""
    with StepLine() as line, place.joined(line.report) as cluster:
        return stream_on_cluster(
            cluster,
            [(task.problem, task.plan, task.items) for task in tasks],
            engine=engine,
            check=check,
            report=line.report,
        )
