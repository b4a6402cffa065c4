"""The tables of the native search are those of the judge."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gapless.formulations.cooperation.quantities import TERMS
from gapless.formulations.cooperation.tables import groups_of
from gapless.formulations.problem import Problem
from gapless.solvers.cooperation.arrays import build_arrays
from gapless.solvers.cooperation.kinds import Kinds, kinds_of
from gapless.solvers.pipelines.arrays import NEVER
from tests.cooperation_instances import drawn_problem, stepping_problem


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("draw", [drawn_problem, stepping_problem])
def test_every_group_takes_what_the_judge_says(draw: Callable[..., Problem], seed: int) -> None:
    problem = draw(seed, layers=3 + seed % 3, devices=4)
    groups = groups_of(problem)
    kinds = Kinds(kinds_of(problem, groups))
    arrays = build_arrays(groups, kinds, set(TERMS))
    cuts, capacities = groups.chain.cuts, groups.chain.unit_memory
    compared, valid = 0, kinds.valid(groups)
    for start, i in enumerate(cuts):
        for stop, j in list(enumerate(cuts))[start + 1 :]:
            row = arrays.number[start, stop]
            for group in range(1, kinds.states.number):
                devices = kinds.devices(group)
                runs = all(groups.chain.runs(i, j, device) for device in devices)
                if not valid[group] and groups.data.steps:
                    continue  # its details are left out
                service = groups.service((i, j, devices)) if runs else None
                if service is None or any(
                    capacity is not None and size > capacity
                    for capacity, size in zip(
                        map(capacities.__getitem__, devices), service.memory_bytes, strict=True
                    )
                ):
                    assert arrays.compute_us[row, group] == NEVER
                    continue
                compared += 1
                found = arrays.compute_us[row, group], arrays.message_us[row, group]
                assert found == (service.time_us, service.message_us)
                assert arrays.leader[row, group] == kinds.of[service.leader]
                amounts = {str(name): int(table[row, group]) for name, table in arrays.amounts.items()}
                assert amounts == {
                    "energy": service.energy_nj,
                    "redundancy": service.extra_flops,
                    "peak_memory": sum(service.memory_bytes),
                    "devices": len(devices),
                }
    assert compared
