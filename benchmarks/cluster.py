"""Plans over the devices of a local cluster, at work (about ten minutes; needs the extras cluster, mnn, zoo).

    python -m benchmarks.cluster                       # all parts
    python -m benchmarks.cluster --parts run,stream
    python -m benchmarks.cluster --nodes "a=core0:40%@40MB/s,b=core1:80%@20MB/s,c=core0:40%"

`run`: links are measured, each network is profiled on every node, the best plans run: predicted against
measured period, and the measured period over the slowest chunk or link; outputs are compared with the uncut
model. `groups`: the same with networks in pieces, some of which several devices compute together. `faults`: a
process that dies, a node that leaves, a link that stalls: what was lost, how long until the next result,
whether every request was answered once. `endurance`: memory over many requests. `stream`: networks one after
the other: who idles at each switch. All devices are emulated here, by quotas and rates.
"""

from __future__ import annotations

import argparse
import os
import platform
import signal
import time
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table

import gapless
from gapless.executor.cluster.actors import RayMembers
from gapless.executor.cluster.cluster import Cluster
from gapless.executor.cluster.membership import Membership
from gapless.executor.cluster.nodes import parse_local_nodes
from gapless.executor.cluster.pipeline import verify_on_cluster
from gapless.executor.model import Model
from gapless.executor.pipeline.verify import References
from gapless.executor.progress import Step
from gapless.executor.simulated import SimulatedRunner
from gapless.formulations.cluster_platform import ClusterPlatform
from gapless.formulations.operation import operation_of
from gapless.formulations.problem import Problem
from gapless.profiler.links.measure import LinkOptions
from gapless.profiler.profile import ProfileOptions
from gapless.rules import serves

NODES = "a=core0:40%@40MB/s+500us,b=core1:80%@20MB/s+500us,c=core0:40%@80MB/s"
PARTS = ("run", "groups", "faults", "endurance", "stream")
_OPTIONS = ProfileOptions(min_repetitions=10, min_seconds_per_item=0.1, retries=0, checks=0, most_far=2.0)

console = Console(width=132)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", default=NODES)
    parser.add_argument("--networks", default="deit-tiny,resnet50,squeezenet")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement")
    parser.add_argument("--requests", type=int, default=10_000, help="of the endurance part")
    given = parser.parse_args()
    parts, names = given.parts.split(","), given.networks.split(",")
    console.print(
        f"{platform.platform()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; nodes {given.nodes}"
    )
    with _cluster(given.nodes) as cluster:
        links = gapless.clusters.measure_links(cluster, options=LinkOptions(rounds=5, shards=0))
        known = gapless.clusters.cluster_platform(links)
        if "groups" in parts:
            groups(cluster, names, known, given.seconds)
        others = {*parts} - {"groups"}
        problems = {name: _profiled(cluster, gapless.open_model(name), known) for name in names if others}
        if "run" in parts:
            run(cluster, problems, given.seconds)
        if "stream" in parts:
            stream(cluster, problems)
        if "endurance" in parts:
            endurance(cluster, problems[names[-1]], given.requests)
    if "faults" in parts:
        faults(given.nodes, problems[names[-1]])


def run(cluster: Cluster, problems: dict[str, Problem], seconds: float) -> None:
    """Run the best plan of each network, with one pipeline and with several."""
    table = _table()
    for name, problem in problems.items():
        asked = {"one": gapless.with_pipelines(problem, "one"), "many": problem}
        plans = {str(gapless.plan(one).plan): one for one in asked.values()}
        for text, one in plans.items():
            table.add_row(name, text, *_run_plan(cluster, one, gapless.open_model(name), seconds))
    _show(table)


def groups(cluster: Cluster, names: Sequence[str], known: ClusterPlatform, seconds: float) -> None:
    """Run each network in pieces: as the best pipeline, in groups, and with a group that has to be there."""
    table = _table()
    for name in names:
        model = gapless.open_model(name, granularity="piece")
        problem = _profiled(cluster, model, known)
        divided = gapless.clusters.with_groups(problem, model, overlap=True)
        pair = list(cluster.devices)[:2]
        shared = divided.with_rules(*(serves(0, device) for device in pair))
        for what, one in {
            "best pipeline": gapless.with_pipelines(problem, "one"),
            "best groups": divided,
            f"{' and '.join(pair)} share what is first": shared,
            "best groups, one request at a time": divided.with_objective("latency"),
        }.items():
            table.add_row(name, what, *_run_plan(cluster, one, model, seconds))
    _show(table)


def _table() -> Table:
    return Table(
        "network", "plan", "predicted", "measured", "error", "over slowest", "worst output", box=None
    )


def _show(table: Table) -> None:
    words = "predicted and measured; measured period over the mean time of the slowest chunk or link"
    console.print(words, table, "", sep="\n")


def _run_plan(cluster: Cluster, problem: Problem, model: Model, seconds: float) -> Iterator[str]:
    """Run the best plan of a problem, compare its outputs; yield what was predicted and measured."""
    plan, name = gapless.plan(problem).plan, problem.network.name
    assert plan is not None
    with gapless.clusters.open_on_cluster(cluster, problem, plan, model=model) as pipeline:
        worst = verify_on_cluster(pipeline, References({name: model})).worst_error
        found = pipeline.measure(gapless.Budget(seconds=seconds))
    predicted = _predicted_us(problem, plan)
    yield f"{predicted / 1e3:.1f} ms"
    yield f"{found.period_us / 1e3:.1f} ms"
    yield f"{predicted / found.period_us - 1:+.1%}"
    yield " ".join(f"{ratio:.3f}" for ratio in _over_slowest(found))
    yield f"{worst:.1e}"
    slow = ", ".join(f"{c.unit} {c.busy_us.median / 1e3:.1f}" for c in found.chunks)
    sent = ", ".join(f"{k.source}->{k.target} {k.time_us.median / 1e3:.1f}" for k in found.links)
    console.print(f"  {name} [{found.deployment}]: busy ms {slow}; messages ms {sent}")


def _predicted_us(problem: Problem, plan: gapless.Plan) -> float:
    deployment = operation_of(problem).deploy(problem, plan)
    return SimulatedRunner(problem).measure(deployment, gapless.Budget(requests=1)).period_us


def _over_slowest(found: gapless.running.Measurement) -> Iterator[float]:
    """Yield, for each stream, its period over the mean time of its slowest chunk or message."""
    for stream in found.streams:
        ends = next(one for one in found.deployment.streams if one.name == stream.stream)
        units = [chunk.unit for chunk in ends.chunks]
        share = stream.period_us / found.period_us
        times = [use.busy_us * share for use in found.units if use.unit in units]
        times += [link.time_us.median for link in found.links if link.stream == stream.stream]
        yield stream.period_us / max(times)


def stream(cluster: Cluster, problems: dict[str, Problem]) -> None:
    """Run the networks one after the other; each for about ten seconds, so that the next can be placed."""
    tasks = []
    for problem in problems.values():
        plan = gapless.plan(problem).plan
        assert plan is not None
        tasks.append((problem, plan, max(30, round(10e6 / _predicted_us(problem, plan)))))
    found = gapless.clusters.stream_on_cluster(cluster, tasks)
    table = Table(
        "task", "items", "placed s", "starts s", "ends s", "period ms", "idle ms by device", box=None
    )
    for index, task in enumerate(found.tasks):
        idle = (f"{s.device} {s.idle_us / 1e3:.1f}" for s in found.switches if s.task == index)
        seconds = (f"{at / 1e6:.2f}" for at in (task.placed_us, task.start_us, task.end_us))
        table.add_row(task.network, str(task.items), *seconds, f"{task.period_us / 1e3:.1f}", ", ".join(idle))
    console.print("a stream of tasks: idle time at each switch", table, "", sep="\n")


def endurance(cluster: Cluster, problem: Problem, requests: int) -> None:
    """Run many requests, and look at the memory of all processes of the devices."""
    plan = gapless.plan(problem).plan
    assert plan is not None
    table = Table("requests", "requests/s", "memory of all processes, MiB", box=None)
    with gapless.clusters.open_on_cluster(cluster, problem, plan) as pipeline:
        began = time.monotonic()
        for number, _ in enumerate(pipeline.play((None for _ in range(requests)), wanted=False), 1):
            if number in (1, requests) or number % (requests // 5) == 0:
                rate = number / (time.monotonic() - began)
                table.add_row(f"{number:,}", f"{rate:.1f}", f"{_rss_mib(cluster):.0f}")
    console.print(f"{requests:,} requests of {problem.network.name}", table, "", sep="\n")


def _rss_mib(cluster: Cluster) -> float:
    """Return the resident memory of this process and of all processes of the devices, MiB."""
    pids = {os.getpid()}
    for name in cluster.devices:
        pids |= set(cluster.status(name)["processes"])
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            total += int(file.read().split()[1])
    return total * os.sysconf("SC_PAGE_SIZE") / 2**20


def faults(nodes: str, problem: Problem) -> None:
    """Lose a process, a node and a link while requests run; each on a cluster of its own."""
    table = Table("what", "lost", "answered", "in order, once", "longest wait s", "then", box=None)
    for what, lose in (
        ("process killed", _kill_process),
        ("node killed", _kill_node),
        ("link stalls", _stall),
    ):
        with _cluster(nodes) as cluster:
            one = gapless.with_pipelines(problem, "one")
            plan = gapless.plan(one).plan
            assert plan is not None
            steps: list[Step] = []
            numbers, waits, last = [], [], time.monotonic()
            with gapless.clusters.open_on_cluster(
                cluster, one, plan, stall_limit_s=3.0, report=steps.append
            ) as pipeline:
                units = pipeline.deployment.units
                for result in pipeline.play((None for _ in range(200)), wanted=True):
                    numbers.append(result.number)
                    waits.append(time.monotonic() - last)
                    last = time.monotonic()
                    if len(numbers) == 60:
                        lose(cluster, units)
                lost = "; ".join(map(str, pipeline.losses))
                then = str(pipeline.deployment)
        table.add_row(
            what, lost, str(len(numbers)), str(numbers == list(range(200))), f"{max(waits):.1f}", then
        )
    console.print("losses while 200 requests run", table, sep="\n")


def _kill_process(cluster: Cluster, units: Sequence[str]) -> None:
    os.kill(cluster.status(units[1])["processes"][0], signal.SIGKILL)


def _kill_node(cluster: Cluster, units: Sequence[str]) -> None:
    members = cluster.members
    assert isinstance(members, RayMembers)
    members.membership.kill_node(units[1])


def _stall(cluster: Cluster, units: Sequence[str]) -> None:
    cluster.member(units[0]).actor.call("slow_down", units[1], '{"latency_us": 1000000000}')


def _cluster(nodes: str) -> Cluster:
    return Cluster(RayMembers(Membership.local(parse_local_nodes(nodes))))


def _profiled(cluster: Cluster, model: Model, known: ClusterPlatform) -> Problem:
    began = time.monotonic()
    found = gapless.clusters.profile_on_cluster(cluster, model, known, options=_OPTIONS)
    took_s = time.monotonic() - began
    console.print(f"  {model.network.name}: profiled on {len(cluster.devices)} devices in {took_s:.0f} s")
    return found


if __name__ == "__main__":
    main()
