"""`serve`: options about powers and heat, and what it says of energy."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from gapless.api.coordinators import limited
from gapless.cli.tasks.serving import Energy
from gapless.executor.coordination.coordinator import Coordinator
from gapless.formulations.coordination.behaviour import Behaviour, UnitBehaviour
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.solvers.coordination.dynamic import LeastSlack
from tests.executor.pipeline.fakes import FakeEngine, chain, platform

from ..conftest import Cli

BEHAVIOUR = """{"format": "gapless.behaviour", "version": 1, "platform": "this", "units": [
 {"unit": "core0", "busy_mw": 4000, "idle_mw": 500}, {"unit": "core1", "busy_mw": 4000, "idle_mw": 500}
], "base_mw": 2000}"""


def test_a_budget_takes_powers_of_a_file_or_of_the_platform() -> None:
    units = tuple(ProcessingUnit(name=name, power_mw=4000, idle_mw=500) for name in ("a", "b"))
    place = Platform(name="p", units=units)
    assert limited("lst", place, None, None).name == "lst"
    with pytest.raises(
        InvalidInputError, match=r"of 4 W is too small for 'p': with one unit at work it takes 4.5 W"
    ):
        limited("lst", place, None, 4.0)
    known = Behaviour(platform="p", base_mw=3000)
    with pytest.raises(InvalidInputError, match=r"7\.5 W"):
        limited("lst", place, known, 7.0)
    with pytest.raises(InvalidInputError, match="the behaviour has a unit 'npu'"):
        limited("lst", place, Behaviour(platform="p", units=(UnitBehaviour(unit="npu"),)), 9.0)
    with pytest.raises(InvalidInputError, match="'adaptive' takes no budget of power"):
        limited("adaptive", place, None, 9.0)
    bare = Platform(name="p", units=(ProcessingUnit(name="a"),))
    with pytest.raises(InvalidInputError, match="those of a are not known: give busy_mw and idle_mw"):
        limited("lst", bare, None, 9.0)


def test_with_power_for_one_unit_two_never_work_at_the_same_time() -> None:
    units = tuple(UnitBehaviour(unit=name, busy_mw=4000, idle_mw=500) for name in ("a", "b"))
    place, model = platform("a", "b"), chain(("sleep", 0.01), name="net")
    policy = limited(LeastSlack(), place, Behaviour(platform="p", units=units), 5.0)
    with Coordinator(place, FakeEngine(), policy) as opened:
        opened.register(model)
        for future in [opened.submit("net", model.sample_inputs(seed)) for seed in range(8)]:
            future.result(timeout=60)
        spans = sorted((ran.start_us, ran.end_us) for ran in opened.record().ran)
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))


def test_energy_is_simulated_where_the_machine_tells_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gapless.cli.tasks.serving.power_source", lambda: None)
    with Coordinator(platform("a"), FakeEngine(), LeastSlack()) as opened:
        assert Energy(opened, None).words(2.0) is None
        units = (UnitBehaviour(unit="a", busy_mw=4000, idle_mw=500),)
        said = Energy(opened, Behaviour(platform="p", units=units, base_mw=2000)).words(2.0)
    assert said == ("energy: 5 J; simulated by the powers of the units; neither RAPL nor hwmon tells it here")


@pytest.mark.slow
def test_rest_needs_a_heat(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text(BEHAVIOUR)
    words = ("serve", "squeezenet", "--port", "0", "--seconds", "1s", "--behaviour", tmp_path / "b.json")
    bare = cli(*words, "--rest", "5")
    assert bare.code == 2
    assert "--rest: '5' has no unit (mK, K), e.g. 5K" in bare.err
    refused = cli(*words, "--rest", "5K")
    assert refused.code == 2
    assert "--rest needs a heat" in refused.err
