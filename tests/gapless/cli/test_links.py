"""`gapless device links` from messages that were measured before; and what is wrong is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from gapless.formulations.cluster_platform import CLUSTER
from gapless.formulations.files import load
from gapless.formulations.json_files import dump
from gapless.profiler.links.samples import LINKS
from tests.profiler.links.messages import LATENCY_US, links

from ..conftest import Cli


@pytest.fixture
def samples(tmp_path: Path) -> str:
    file = tmp_path / "was.links.json"
    file.write_text(dump(links("a", "b", "c", noise=0.02), LINKS))
    return str(file)


@pytest.mark.slow
def test_links_are_fitted_again_and_written_as_a_cluster(cli: Cli, samples: str, tmp_path: Path) -> None:
    out = tmp_path / "cluster.json"
    run = cli("device", "links", "--samples", samples, "--out", str(out))
    assert run.code == 0
    assert run.err == f"wrote {out}\n"
    assert "bandwidth" in run.out
    platform = load(out, CLUSTER)
    assert platform.devices == ("a", "b", "c")
    assert len(platform.links) == 6
    for link in platform.links:
        assert link.latency_us == pytest.approx(LATENCY_US, rel=0.05)
        assert link.bytes_per_second == pytest.approx(20_000_000, rel=0.05)
    assert not (tmp_path / "cluster.links.json").exists()  # nothing was measured
    shown = cli("show", str(out))
    assert shown.code == 0


def test_machines_read_fits_and_errors(cli: Cli, samples: str) -> None:
    found = cli("device", "links", "--samples", samples, "--json").document
    assert [(fit["source"], fit["target"]) for fit in found["fits"]][:2] == [("a", "b"), ("a", "c")]
    low, value, high = (found["fits"][0]["weights"]["e"][key] for key in ("low", "value", "high"))
    assert low <= value <= high
    alone = next(one for one in found["checks"]["in_short"] if one["load"] == "idle")
    assert alone["fit"]["median"] < 0.03 < alone["bandwidth"]["p90"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "which cluster? --local NODES starts one"),
        (("--local", "2", "--samples", "x.json"), "which cluster? --local NODES starts one"),
        (("--local", "2", "--address", "a:1"), "give one of them"),
        (("--local", "a=corn0"), "local node 'a=corn0' cannot be read"),
        (("--samples", "nowhere.json"), "nowhere.json"),
        (("--address", "nowhere"), "expected HOST:PORT"),
    ],
)
def test_what_is_wrong_is_told(cli: Cli, words: tuple[str, ...], said: str) -> None:
    run = cli("device", "links", *words)
    assert run.code == 2
    assert said in " ".join(run.err.split())
