"""How plans of pipelines run: one stream of items for each pipeline, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..chain import Chain
from ..cluster import Pipelines, refuse_devices
from ..deployment import Deployment
from ..history import History, SteadyState, link_name
from ..operation import Line, Server, ServerKind
from ..plan import Plan
from ..problem import Problem
from ..remaining import DevicesOperation, Entries, unchanged
from ..stations import Station
from ..usage import Usage
from . import history
from .deployment import deploy
from .plans import Pipe, Pipes, pipe_names, plan_of
from .tables import Cluster, cluster_of
from .timing import pipe_of, stations_of
from .usage import pipelines_usage


class PipelinesOperation(DevicesOperation):
    """Endless streams on disjoint devices; the runtime serves those on one board, others are played."""

    def deploy(self, problem: Problem, plan: Plan, *, task_slots: int | None = None) -> Deployment:
        """Return one stream for each pipeline, of one item at a time where the latency counts first."""
        alone = task_slots is None and self.pace(problem) == "latency"
        return deploy(cluster_of(problem.charged(plan)), plan, task_slots=1 if alone else task_slots)

    def arrange(self, problem: Problem, plan: Plan) -> Deployment:
        """Return one stream for each pipeline."""
        return deploy(cluster_of(problem.charged(plan)), plan)

    def check_executable(self, problem: Problem) -> None:
        """Refuse devices that links join, and devices that are pipelines themselves."""
        data = cluster_of(problem).data
        what = ("links" if data.links else "") or ("devices with units of their own" if data.inner else "")
        if what:
            refuse_devices(what)

    def rivals(self, problem: Problem) -> Iterator[Problem]:
        """Yield the problem with one pipeline, where several may be."""
        cluster = cluster_of(problem)
        if cluster.most_pipelines > 1 and self.pace(problem) != "latency":
            yield replace(problem, data=replace(cluster.data, most=1))

    def devices(self, problem: Problem) -> Pipelines:
        """Return the data of the problem."""
        return cluster_of(problem).data

    def data(self, problem: Problem, devices: Pipelines, entries: Entries = unchanged) -> Pipelines:
        """Return what joins the devices: there is nothing else."""
        return devices

    def baselines(
        self, problem: Problem, sets: Sequence[tuple[str, ...]]
    ) -> Iterator[tuple[str, Deployment]]:
        """Yield the network on each device alone, and its replicas on several; those make no item faster."""
        cluster = cluster_of(problem)
        for names in sets:
            places = sorted(cluster.devices.index(name) for name in names)
            pipes: Pipes = tuple(((0, cluster.chain.layer_count, place),) for place in places)
            if len(names) == 1 or self.pace(problem) != "latency":
                label = f"{'serial' if len(names) == 1 else 'replicas'} on {'+'.join(names)}"
                yield label, self.deploy(problem, plan_of(cluster, pipes))

    def chains(self, problem: Problem, deployment: Deployment) -> tuple[Chain, ...]:
        """Return the table of the network for each stream."""
        return (cluster_of(problem).chain,) * len(deployment.streams)

    def chunk_us(self, problem: Problem, deployment: Deployment) -> tuple[tuple[int | None, ...], ...]:
        """Return how long each chunk computes, on devices with units of their own, too."""
        cluster = cluster_of(problem)
        return tuple(
            tuple(
                cluster.compute_us(*part) if cluster.runs(*part) else None
                for part in pipe_of(cluster, stream)
            )
            for stream in deployment.streams
        )

    def lines(self, problem: Problem, plan: Plan) -> tuple[Line, ...]:
        """Return the stations of each pipeline."""
        cluster = cluster_of(problem)
        pipes: Pipes = problem.formulation.code(problem, plan)
        names = pipe_names(len(pipes))
        return tuple(
            Line(
                name=name,
                servers=tuple(_server(cluster, pipe, station) for station in stations_of(cluster, pipe)),
            )
            for name, pipe in zip(names, pipes, strict=True)
        )

    def history(
        self,
        problem: Problem,
        plan: Plan,
        *,
        requests: int | None = None,
        interval_us: int | None = None,
        task_slots: int | None = None,
    ) -> History:
        """Play a number of items."""
        return history.history(
            problem, plan, requests=requests, interval_us=interval_us, task_slots=task_slots
        )

    def usage(self, problem: Problem, history: History) -> Usage:
        """Return the bytes in use over time."""
        return pipelines_usage(problem, history)

    def play(self, problem: Problem, deployment: Deployment, rounds: int) -> History:
        """Play items that wait for task slots."""
        return history.play(problem, deployment, rounds)

    def steady(self, problem: Problem, deployment: Deployment) -> tuple[SteadyState, ...]:
        """Return what each pipeline does over and over."""
        return history.steady(problem, deployment)


def _server(cluster: Cluster, pipe: Pipe, station: Station) -> Server:
    """Return what a station is to items that pass it: a device, or what it does beside computing."""
    work = station.works[0]
    device = cluster.devices[pipe[work.chunk][2]]
    kind = ServerKind.COMPUTES if work.row == device else ServerKind.SENDS
    if work.row == link_name(cluster.data.host, device):
        kind = ServerKind.RECEIVES
    return Server(kind=kind, unit=device, time_us=station.time_us)
