"""PICO's figures and tables recomputed: small numbers, the search over graphs, and the command."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.group_instances import chain_problem
from benchmarks.pico import __main__ as command
from benchmarks.pico.graphs import GraphSearch
from benchmarks.pico.layers import figure_2, fused_flops
from benchmarks.pico.planning import branches_on, over_graph
from benchmarks.pico.testbed import PaperDevices, by_scheme, least_us, planned, trunk
from benchmarks.printing import Part, Statement
from gapless.solvers.protocol import TimeIsUpError

BED = PaperDevices()


def test_shares_of_convolutions_are_those_of_the_paper() -> None:
    vgg16 = next(part for part in figure_2(BED) if isinstance(part, Statement))
    assert vgg16.found == "99.14 %"  # printed: 99.19
    assert vgg16.holds


def test_fused_layers_of_vgg16() -> None:
    network = trunk("vgg16")
    whole = fused_flops(network, 18, 1)[0]
    assert whole == sum(node.flops for node in network.nodes)
    assert sum(fused_flops(network, 1, 8)) == fused_flops(network, 1, 1)[0]  # one layer: no halo
    assert 0.20 < sum(fused_flops(network, 13, 2)) / fused_flops(network, 13, 1)[0] - 1 < 0.22


@pytest.mark.parametrize("charged", [True, False])
def test_over_a_chain_the_search_over_graphs_finds_the_optimum(charged: bool) -> None:
    problem = chain_problem(5, [3.0] * 3, types=["pi"] * 3, mbit_per_second=50.0, interstage=charged)
    best = least_us(problem)

    def search(seconds: float) -> int:
        how = {"mbit_per_second": 50.0, "known_us": best, "charged": charged, "seconds": seconds}
        return GraphSearch(problem.data.spatial, 3.0, 3, **how).run().period_us  # type: ignore[arg-type]

    assert abs(search(60.0) - best) <= 5  # a microsecond for each layer: times are rounded
    with pytest.raises(TimeIsUpError):
        search(0.0)


def test_over_branches_chains_of_pieces_lose() -> None:
    problem = branches_on(BED, 2, 4, 4, charged=False)
    found = over_graph(problem, BED, 60.0)
    assert found.period_us < least_us(problem)
    assert max(max(one.compute_us) + one.message_us for one in found.services) == found.period_us


def test_accounts_add_up() -> None:
    problem = chain_problem(5, [4.0, 2.0], mbit_per_second=50.0)
    for one in (planned(problem, "native"), by_scheme(problem, "ofl")):
        assert max(one.busy) <= 1
        assert all(a <= b for a, b in zip(one.weight_bytes, one.memory_bytes, strict=True))
        assert one.feature_bytes > 0
    unlike = BED.unlike
    assert unlike.idle_mw[0] < unlike.types[0].power_mw  # type: ignore[operator]
    slower = PaperDevices(operations=1.5).unlike.types[0].speed
    assert slower is not None
    assert slower.flops_per_second == 3_300_000_000
    assert BED.pis(1.5, 0.8, 0.8).devices == ("pi15", "pi08-1", "pi08-2")


def test_the_command_prints_and_is_told_what_is_wrong(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert command.main(["--figures", "18", "--pictures", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "devices estimated: 1 operation(s) a cycle" in printed
    assert "\n| exact |" in printed
    assert "* Paper: busy with the search" in printed
    for words in (["--figures", "99"], ["--seconds", "0"], ["--pictures", str(tmp_path / "none")]):
        with pytest.raises(SystemExit) as ended:
            command.main(words)
        assert ended.value.code == 2

    def stopped(bed: PaperDevices, seconds: float) -> Iterator[Part]:
        raise KeyboardInterrupt

    monkeypatch.setitem(command.TABLES, "7", stopped)
    assert command.main(["--tables", "7"]) == 130
    assert "interrupted" in capsys.readouterr().err
