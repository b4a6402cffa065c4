"""Small settings for tests of coordination."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gapless.formulations.coordination.behaviour import Behaviour
from gapless.formulations.coordination.setting import Setting
from gapless.formulations.costs import CostTable, Interference, NetworkCosts
from gapless.formulations.hardware import Platform, ProcessingUnit, UnitKind
from gapless.formulations.network import Layer, Network

KINDS = {"cpu": UnitKind.CPU, "gpu": UnitKind.GPU, "npu": UnitKind.NPU, "dsp": UnitKind.DSP}

Rows = Sequence[Sequence[int | None]]


def setting(
    units: Sequence[str],
    networks: Mapping[str, Rows],
    *,
    behaviour: Behaviour | None = None,
    interference: Interference | None = None,
    borders: Mapping[str, tuple[int, ...]] | None = None,
) -> Setting:
    """Return a setting from times by [layer][unit]; the kind of a unit is what its name begins with."""
    return Setting(
        platform=Platform(
            name="board", units=tuple(ProcessingUnit(name=unit, kind=KINDS[unit[:3]]) for unit in units)
        ),
        networks=tuple(
            Network(name=name, layers=tuple(Layer(name=f"layer{index}") for index in range(len(rows))))
            for name, rows in networks.items()
        ),
        costs=CostTable(
            units=tuple(units),
            networks=tuple(
                NetworkCosts(network=name, layer_us=tuple(map(tuple, rows)))
                for name, rows in networks.items()
            ),
        ),
        behaviour=behaviour,
        interference=interference,
        borders=borders or {},
    )


FIGURE_9 = ((10, 5, 4), (10, 5, 4), (10, None, 4), (10, None, None))
"""Band, Fig. 9: four operators on CPU, GPU and NPU; times are ours."""

FIGURE_6 = {
    "efficientdet": ((20_000, 7_000), (15_000, None), (9_000, 3_000)),
    "mobilenetv1": ((16_000, 4_000),),
}
"""Band, Fig. 6: a network that falls back behind its first part, and one that could use the NPU meanwhile.

Times are estimates in the manner of the figure, which prints only that the NPU is left at 7 ms, and that
MobileNetV1 becomes faster by 58 %.
"""
