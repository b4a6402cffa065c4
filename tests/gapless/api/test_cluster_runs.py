"""Plans over devices at work, from Python: losses and drifting links are planned anew."""

from __future__ import annotations

import json
import math
from itertools import permutations
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from rich.console import Console

import gapless
from gapless.answers.streams import stream_blocks
from gapless.api.cluster_runs import open_on_cluster, stream_on_cluster
from gapless.api.streams import played
from gapless.executor.cluster.cluster import Cluster
from gapless.executor.cluster.endpoint import LinkRate
from gapless.executor.cluster.loss import Loss
from gapless.executor.progress import Step
from gapless.executor.runner import UNCHECKED
from gapless.files.documents import stream_document
from gapless.formulations.cluster import Link, Pipelines
from gapless.formulations.errors import InvalidInputError, OutputMismatchError, UnitLostError
from gapless.formulations.operation import operation_of
from gapless.formulations.problem import Problem
from gapless.profiler.links.fitting import LinkFit, fit_link
from gapless.profiler.links.samples import MeasuredLink, MessageSample
from gapless.view.terminal.blocks import blocks_view
from tests.executor.cluster.devices import own_cluster
from tests.executor.graph.models import load, residual
from tests.executor.pipeline.fakes import ENGINE, chain

DEVICES = ("a", "b", "c")


def problem(*, host: str = "", latency_us: int = 100) -> Problem:
    """Return two layers on three devices, of which c is the slowest."""
    table = gapless.table_problem({"0": [10, 10, 12], "1": [10, 10, 12]}, units=DEVICES, network="net")
    links = tuple(
        Link(source=x, target=y, bytes_per_second=10**9, latency_us=latency_us)
        for x in DEVICES
        for y in DEVICES
        if x != y
    )
    data = Pipelines(links=links, host=host, most=1)
    return gapless.with_pipelines(table, data)


def fit(source: str, target: str, us: float) -> LinkFit:
    """Return the fit of a link whose messages take so long, whatever their size."""
    samples = tuple(
        MessageSample(size=size, latency_us=us * (1 + 0.001 * number))
        for size in (64, 1000, 100_000)
        for number in range(8)
    )
    return fit_link(MeasuredLink(source=source, target=target, samples=samples))


def without_device(found: Problem, device: str) -> Problem:
    """Return what is left of a problem without a device."""
    return operation_of(found).without_device(found, device)


def without_link(found: Problem, source: str, target: str) -> Problem:
    """Return what is left of a problem without a link."""
    return operation_of(found).without_link(found, source, target)


def test_what_is_left_without_a_device_keeps_everything_else() -> None:
    left = without_device(problem(), "b")
    assert left.platform.unit_names == left.costs.units == ("a", "c")
    assert left.costs.networks[0].layer_us == ((10_000, 12_000), (10_000, 12_000))
    assert {(link.source, link.target) for link in left.data.links} == {("a", "c"), ("c", "a")}
    assert str(gapless.plan(left).plan) == "0-0 a | 1-1 c"
    with pytest.raises(InvalidInputError, match="without 'a': it holds the inputs"):
        without_device(problem(host="a"), "a")
    with pytest.raises(InvalidInputError, match="without 'd': it is no device"):
        without_device(problem(), "d")
    with pytest.raises(InvalidInputError, match="without 'c': it is the only device"):
        without_device(without_device(without_device(problem(), "a"), "b"), "c")


def test_what_is_left_without_a_link_goes_another_way() -> None:
    assert str(gapless.plan(problem()).plan) == "0-0 a | 1-1 b"
    left = without_link(problem(), "a", "b")
    assert str(gapless.plan(left).plan) == "0-0 b | 1-1 a"
    typed = gapless.with_pipelines(
        problem(),
        Pipelines(
            types=("t", "t", "u"), links=(Link(source="t", target="t", bytes_per_second=10**6),), most=1
        ),
    )
    left = without_link(typed, "a", "b")
    assert [(link.source, link.target) for link in left.data.links] == [("b", "a")]
    with pytest.raises(InvalidInputError, match="without the link b -> a: no other is known"):
        without_link(left, "b", "a")


def test_a_plan_that_comes_back_is_refused_with_what_to_do() -> None:
    times: dict[str, list[float | None]] = {"0": [1, 9], "1": [None, 1], "2": [1, 9]}
    found = gapless.with_passage(gapless.table_problem(times, units=("a", "b"), network="net"))
    plan = gapless.plan(found).plan
    assert plan is not None
    assert str(plan) == "0-0 a | 1-1 b | 2-2 a"
    cluster = cast("Cluster", SimpleNamespace(devices=("a", "b")))
    with pytest.raises(InvalidInputError, match=r"comes back to a device, .*: plan with --passage once"):
        open_on_cluster(cluster, found, plan, model=chain("same", "same", "same", name="net"), engine=ENGINE)


@pytest.mark.slow
def test_a_lost_device_is_planned_around() -> None:
    model = chain(("sleep", 0.005), ("sleep", 0.005), name="net")
    steps: list[Step] = []
    with own_cluster(*DEVICES) as (cluster, members):
        found = problem()
        plan = gapless.plan(found).plan
        assert plan is not None
        with open_on_cluster(
            cluster, found, plan, model=model, engine=ENGINE, report=steps.append
        ) as running:
            numbers = []
            for result in running.play([None] * 60, wanted=False):
                numbers.append(result.number)
                if len(numbers) == 20:
                    members.actors["b"].lose("its power was cut")
            assert numbers == list(range(60))
            assert str(running.deployment) == "0-0 a | 1-1 c"
        assert [step.text.split(";")[0] for step in steps][-1] == "going on with [0-0 a | 1-1 c]"
        with pytest.raises(InvalidInputError, match="runs on b, but the cluster has a, c"):
            open_on_cluster(cluster, found, plan, model=model, engine=ENGINE)


@pytest.mark.slow
def test_groups_are_planned_around_a_lost_member(tmp_path: Path) -> None:
    model, platform = load(residual(2), tmp_path, granularity="piece"), tmp_path / "cluster.json"
    types = [{"name": name, "count": 1, "speed": {"flops_per_second": 10**8}} for name in DEVICES]
    links = [
        {"source": source, "target": target, "bytes_per_second": 10**9}
        for source, target in permutations(DEVICES, 2)
    ]
    about = {"format": "gapless.cluster", "version": 1, "name": "three", "types": types, "links": links}
    platform.write_text(json.dumps(about))
    found = gapless.clusters.group_problem(model, platform).with_objective("latency")
    plan = gapless.plan(found).plan
    assert plan is not None
    frames, outputs = [model.sample_inputs(seed) for seed in range(12)], []
    with (
        own_cluster(*DEVICES) as (cluster, members),
        open_on_cluster(cluster, found, plan, model=model, engine="onnxruntime") as running,
    ):
        assert running.deployment.streams[0].groups[0] == range(3)
        for result in running.map(frames):
            outputs.append(result["b2"])
            if len(outputs) == 4:
                members.actors["b"].lose("its power was cut")
        assert running.deployment.units == ("a", "c")
        assert running.deployment.is_divided
    right = [model.reference(frame)["b2"] for frame in frames]
    np.testing.assert_allclose(outputs, right, atol=1e-5)


@pytest.mark.slow
def test_without_any_plan_it_is_said_why() -> None:
    model = chain(("sleep", 0.005), ("sleep", 0.005), name="net")
    with own_cluster(*DEVICES) as (cluster, members):
        found = problem(host="a")
        plan = gapless.plan(found).plan
        assert plan is not None
        with open_on_cluster(cluster, found, plan, model=model, engine=ENGINE) as running:
            results = running.play([None] * 60, wanted=False)
            next(results)
            members.actors["a"].lose("it fell")
            with pytest.raises(InvalidInputError, match="without 'a': it holds the inputs"):
                list(results)


@pytest.mark.slow
def test_a_link_that_drifts_is_planned_around() -> None:
    """The link a -> b becomes slower than the whole pipeline was; from b to a it is as it was."""
    model = chain(("sleep", 0.005), ("sleep", 0.005), name="net")
    steps: list[Step] = []
    with own_cluster(*DEVICES, a=LinkRate(latency_us=2000), b=LinkRate(latency_us=2000)) as (
        cluster,
        members,
    ):
        found = problem(latency_us=2000)
        plan = gapless.plan(found).plan
        assert plan is not None
        fits = [fit("a", "b", 2500.0), fit("b", "a", 2500.0)]
        with open_on_cluster(
            cluster, found, plan, model=model, engine=ENGINE, fits=fits, report=steps.append
        ) as running:
            numbers = []
            for result in running.play([None] * 150, wanted=False):
                numbers.append(result.number)
                if len(numbers) == 10:
                    members.actors["a"].call("slow_down", "b", '{"latency_us": 60000}')
            assert numbers == list(range(150))
            assert running.deployment.streams[0].chunks[0].unit != "a"
            assert not running.losses
    assert any("the link a -> b has drifted" in step.text for step in steps)


@pytest.mark.slow
def test_streams_run_with_the_plans_of_their_problems() -> None:
    model = chain(("sleep", 0.005), ("sleep", 0.005), name="net")
    with own_cluster(*DEVICES) as (cluster, _), pytest.MonkeyPatch.context() as patch:
        patch.setattr("gapless.api.cluster_runs.models_for", lambda problem: {"net": model})
        tasks = [(problem(), None, 20), (problem(), None, 10)]
        found = stream_on_cluster(cluster, tasks, engine=ENGINE)
        unchecked = stream_on_cluster(cluster, tasks[1:], engine=ENGINE, check=False)
    assert [task.items for task in found.tasks] == [20, 10]
    assert set(found.tasks[0].devices) == {"a", "b"}
    assert all(math.isfinite(task.period_us) for task in found.tasks)
    assert all(task.numbers.startswith("numbers agree with the uncut model") for task in found.tasks)
    assert [task.numbers for task in unchecked.tasks] == [UNCHECKED]
    played_ahead = played([(problem(), 20), (problem(), 10)], gapless.plan)
    console = Console(width=200)
    with console.capture() as shown:
        console.print(blocks_view(stream_blocks(played_ahead, found)))
    assert shown.get().count("In net, numbers agree with the uncut model") == 2
    document = stream_document(played_ahead, found)
    assert [task["numbers"] for task in document["ran"]["tasks"]] == [task.numbers for task in found.tasks]


@pytest.mark.slow
def test_a_stream_with_wrong_numbers_is_refused_before_it_starts() -> None:
    wrong = chain(("add", 1.0), ("wrong", 1.0), name="net")
    with own_cluster(*DEVICES) as (cluster, _), pytest.MonkeyPatch.context() as patch:
        patch.setattr("gapless.api.cluster_runs.models_for", lambda problem: {"net": wrong})
        with pytest.raises(OutputMismatchError, match=r"The first wrong tensor is 't1'"):
            stream_on_cluster(cluster, [(problem(), None, 5)], engine=ENGINE)


def test_losses_are_said_in_words() -> None:
    assert str(Loss(device="a", words="it fell")) == "device 'a' is lost: it fell"
    assert str(Loss(link=("a", "b"), words="it stalls")) == "the link a -> b is lost: it stalls"
    assert issubclass(UnitLostError, gapless.GaplessError)
