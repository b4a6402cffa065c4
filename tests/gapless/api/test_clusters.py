"""Problems over the devices of a cluster from Python: whatever names a model, whatever names a cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

import gapless
from gapless.api.clusters import cluster_problem, network_of
from gapless.formulations.cluster_platform import CLUSTER
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.files import NETWORK, dump, dump_problem
from gapless.formulations.network import Layer, Network, Tensor
from gapless.profiler.clusters.catalog import shipped_cluster

NETWORK_OF_TWO = Network(
    name="two",
    layers=tuple(Layer(name=name, weight_bytes=10**6, flops=10**9, op_types=("Conv",)) for name in "ab"),
    tensors=tuple(
        Tensor(name=f"x{source}", bytes=1000, source=source, targets=(source + 1,)) for source in (-1, 0, 1)
    ),
)


def test_a_cluster_is_named_read_or_given(tmp_path: Path) -> None:
    cluster = shipped_cluster("raspberry-pis")
    file = tmp_path / "mine.json"
    file.write_text(dump(cluster, CLUSTER))
    found = [cluster_problem(NETWORK_OF_TWO, given) for given in (cluster, "raspberry-pis", file, str(file))]
    assert len({problem.fingerprint for problem in found}) == 1
    assert gapless.clusters.load_cluster(file) == cluster


def test_a_network_is_given_or_read(tmp_path: Path) -> None:
    file = tmp_path / "two.json"
    file.write_text(dump(NETWORK_OF_TWO, NETWORK))
    problem = tmp_path / "problem.json"
    problem.write_text(dump_problem(cluster_problem(NETWORK_OF_TWO, "raspberry-pis")))
    for given in (NETWORK_OF_TWO, file, str(problem), cluster_problem(NETWORK_OF_TWO, "raspberry-pis")):
        assert network_of(given) == NETWORK_OF_TWO
    assert network_of("pixel7a/octree").name == "octree"


@pytest.mark.slow
def test_a_model_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = gapless.open_model("squeezenet")
    assert network_of(model) == network_of("squeezenet") == model.network
    monkeypatch.setenv("GAPLESS_CACHE", str(tmp_path))
    assert network_of("vit-large") == network_of("zoo:vit-large")
    assert not network_of("vit-large").models


@pytest.mark.slow
def test_plan_and_compare_take_a_platform() -> None:
    found = gapless.plan(
        NETWORK_OF_TWO, platform="raspberry-pis", backend="exhaustive", batch=2, pipelines="one"
    )
    assert str(found.status) == "optimal"
    problem = cluster_problem(NETWORK_OF_TWO, "raspberry-pis", batch=2, pipelines="one")
    assert found.objective == gapless.plan(problem, backend="exhaustive").objective
    comparison = gapless.compare(NETWORK_OF_TWO, platform="raspberry-pis", backends=["exhaustive"])
    assert comparison.problem.network.name == "two"
    assert comparison.results[0].objective is not None


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache for networks that are too large for that of a user."""
    return tmp_path_factory.mktemp("cache")


@pytest.mark.slow
@pytest.mark.parametrize("case", [1, 2, 3, 4])
@pytest.mark.parametrize(("name", "batch"), [("vit-large", 64), ("bert-large", 48), ("vit-huge", 64)])
def test_the_networks_of_epipe_are_planned_on_its_clusters(
    name: str, batch: int, case: int, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GAPLESS_CACHE", str(cache))
    problem = cluster_problem(name, f"epipe-case-{case}", batch=batch)
    many, one = gapless.plan(problem), gapless.plan(gapless.with_pipelines(problem, "one"))
    assert str(many.status) == str(one.status) == "optimal"
    assert many.objective is not None
    assert one.objective is not None
    assert many.objective <= one.objective


def test_a_model_without_a_platform_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"a model is given, and no problem: .*platform=\.\.\."):
        gapless.plan(NETWORK_OF_TWO)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"platform": "kirin990"}, r"'kirin990' is one device: --platform kirin990 takes a --workload"),
        ({"platform": "epipe"}, "neither a cluster file nor a shipped cluster"),
        ({"pipelines": "two"}, r"pipelines is .*two.*, must be many, one, or a number"),
        ({"batch": 0}, "the batch is 0"),
        ({"model": "vit-lager"}, "neither a file nor a built-in network; did you mean vit-large"),
    ],
)
def test_what_cannot_be_planned_is_refused(given: dict[str, str], message: str) -> None:
    asked = {"model": NETWORK_OF_TWO, "platform": "raspberry-pis", **given}
    with pytest.raises(InvalidInputError, match=message):
        cluster_problem(**asked)  # type: ignore[arg-type] # wrong on purpose


@pytest.mark.parametrize("name", ["vit-large", "epipe-case-2"])
def test_halves_of_a_problem_are_told_what_is_missing(name: str) -> None:
    with pytest.raises(InvalidInputError, match=r"not a problem: `gapless plan .* --platform"):
        gapless.load_problem(name)


def test_a_workload_on_a_cluster_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="the cluster 'raspberry-pis' takes one network"):
        gapless.load_workload("a,b", platform="raspberry-pis")
