"""Pipelines and groups of layers over several devices, links between them, and streams of tasks."""

from __future__ import annotations

from .api.cluster_runs import open_on_cluster, profile_on_cluster, stream_on_cluster
from .api.clusters import cluster_problem
from .api.groups import group_problem, with_groups
from .api.kinds import KindResult, compare_kinds
from .api.links import SettledPlan, load_links, measure_links, plan_with_traffic
from .api.streams import TaskStream, task_stream
from .executor.cluster.actors import join_cluster, local_cluster
from .executor.cluster.cluster import Cluster
from .executor.cluster.pipeline import ClusterPipeline
from .executor.cluster.stream import RunStream
from .formulations.cluster import Link, Pipelines
from .formulations.cluster_platform import ClusterPlatform
from .formulations.task_stream import PlanningTime
from .profiler.clusters.catalog import load_cluster
from .profiler.clusters.pipeedge import import_pipeedge
from .profiler.links.fitting import LinkFit, fit_link
from .profiler.links.measure import LinkOptions
from .profiler.links.platform import cluster_platform
from .profiler.links.samples import Links, MessageSample
from .profiler.placement_files import import_placement

__all__ = [
    "Cluster",
    "ClusterPipeline",
    "ClusterPlatform",
    "KindResult",
    "Link",
    "LinkFit",
    "LinkOptions",
    "Links",
    "MessageSample",
    "Pipelines",
    "PlanningTime",
    "RunStream",
    "SettledPlan",
    "TaskStream",
    "cluster_platform",
    "cluster_problem",
    "compare_kinds",
    "fit_link",
    "group_problem",
    "import_pipeedge",
    "import_placement",
    "join_cluster",
    "load_cluster",
    "load_links",
    "local_cluster",
    "measure_links",
    "open_on_cluster",
    "plan_with_traffic",
    "profile_on_cluster",
    "stream_on_cluster",
    "task_stream",
    "with_groups",
]
