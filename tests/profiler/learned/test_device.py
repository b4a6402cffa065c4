from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gapless.formulations.errors import InvalidInputError
from gapless.formulations.files import dump, load, save
from gapless.profiler.learned.device import DEVICE, REFERENCE, embed
from tests.profiler.learned.samples import device, random_features, times


def test_the_regression_finds_the_law_of_a_device() -> None:
    weights = [2 * REFERENCE[0], 0.5 * REFERENCE[1], *REFERENCE[2:]]
    networks = [random_features(f"n{seed}", 20, seed) for seed in range(8)]
    found = embed("u", networks, [times(one, "u", weights) for one in networks])
    assert found.error < 0.02
    ratios = np.array(found.weights) / np.array(weights)
    assert ratios[:5] == pytest.approx(1.0, abs=0.1)


def test_one_network_is_enough_for_a_speed() -> None:
    network = random_features("n", 6, 0)
    found = embed("u", [network], [times(network, "u", [3 * one for one in REFERENCE])])
    assert np.array(found.weights) / np.array(REFERENCE) == pytest.approx(3.0, rel=0.05)


def test_a_device_that_is_slower_throughout_has_the_same_vector() -> None:
    described = device({"fast": 1.0, "slow": 4.0})
    fast, slow = (described.embedding(unit) for unit in ("fast", "slow"))
    assert slow.vector() == pytest.approx(fast.vector(), abs=0.05)
    ratio = slow.linear_us(described.networks[0]).sum() / fast.linear_us(described.networks[0]).sum()
    assert ratio == pytest.approx(4.0, rel=0.01)


def test_descriptions_are_read_as_they_were_written(tmp_path: Path) -> None:
    described = device({"core0": 1.0})
    described = replace(described, embeddings=(described.embedding("core0"),))
    save(dump(described, DEVICE), tmp_path / "device.json")
    assert load(tmp_path / "device.json", DEVICE) == described


def test_descriptions_that_contradict_themselves_are_refused() -> None:
    described = device({"core0": 1.0})
    entry = described.times[0]
    with pytest.raises(InvalidInputError, match="the network or the unit is not described"):
        replace(described, times=(replace(entry, unit="core7"),))
    with pytest.raises(InvalidInputError, match="lies outside of its 12 layers"):
        replace(described, times=(replace(entry, spans=(replace(entry.spans[0], stop=13),)),))
    with pytest.raises(InvalidInputError, match="a time is not above 0"):
        replace(described, times=(replace(entry, spans=(replace(entry.spans[0], run_us=float("nan")),)),))


def test_a_unit_without_times_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="no network has run on unit 'u'"):
        embed("u", (), ())
