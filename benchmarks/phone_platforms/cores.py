"""The Kirin 990 with its clusters divided: "split-kirin990", for plans over combinations of cores.

Pipe-it chooses among combinations of cores, and Hetero2Pipe counts them (Eq. 12); it takes clusters as a
whole itself, because cores of one cluster slow each other down by up to 70 % (Fig. 10). Here are the whole
clusters and the groups of its Fig. 10: two and two cores, three and one. Groups that share a core exclude
each other.

All times of groups are *estimated*: operations take longer in proportion to the clocks, bandwidth and
launches are those of the cluster. The printed 70 % is taken for YOLOv4 beside VGG16 on two groups of one
cluster, which is what the figure shows; it holds for the big cores, and is taken for the little ones, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gapless.formulations.costs import Interference
from gapless.formulations.hardware import ProcessingUnit
from gapless.formulations.network import Network
from gapless.profiler.analytic.model import UnitModel

from .hetero2pipe import BIG, KIRIN_CLOCKS, LITTLE, Phone, following, slower

NAME = "split-kirin990"

IN_CLUSTER = 0.7
"""Largest slowdown between groups of cores of one cluster, printed (Fig. 10)."""

VICTIM, AGGRESSOR = "yolov4", "vgg16"
"""The networks of Fig. 10."""

_FIRST_CORE = {LITTLE: 0, BIG: 4}
_GROUPS = ((0, 3), (3, 4), (0, 2), (2, 4))
"""First core of a cluster, and one past the last."""

_CLOCKS = {BIG: KIRIN_CLOCKS.big, LITTLE: KIRIN_CLOCKS.little}


def divided_kirin(phone: Phone, networks: Sequence[Network]) -> Phone:
    """Return the Kirin 990 with groups of cores behind each cluster."""
    known = {network.name: network for network in networks}
    units: list[ProcessingUnit] = []
    models: list[UnitModel] = []
    for unit, model in zip(phone.platform.units, phone.model.units, strict=True):
        cores = _cores(unit.name, (0, 4)) if unit.name in _CLOCKS else ()
        units.append(replace(unit, cores=cores))
        models.append(model)
        for span in _GROUPS if cores else ():
            part = _cores(unit.name, span)
            clocks = _CLOCKS[unit.name]
            share = sum(clocks[slice(*span)]) / sum(clocks)
            group = slower(model, _name(unit.name, span), operations=1 / share, moves=1)
            units.append(replace(unit, name=group.unit, cores=part, threads=len(part)))
            models.append(following(group, model, known))
    return Phone(
        platform=replace(
            phone.platform, name=NAME, units=tuple(units), source=_SOURCE + phone.platform.source
        ),
        model=replace(phone.model, units=tuple(models), notes=f"{_NOTES} {phone.model.notes}"),
    )


_SOURCE = "Estimated: the clusters of kirin990 also in groups of cores (Fig. 10). "
_NOTES = (
    "Groups of cores: the time for operations in proportion to the clocks, all else as for their cluster."
)


def divided_interference(whole: Interference, phone: Phone) -> Interference:
    """Return the interference with groups of cores: as their cluster to others, by Fig. 10 inside it."""
    cluster = {unit.name: _cluster(unit.name) for unit in phone.platform.units}
    cores = {unit.name: set(unit.cores) for unit in phone.platform.units}
    inside = round(IN_CLUSTER * 1e9 / whole.pressure(VICTIM, AGGRESSOR))

    def base(victim: str, aggressor: str) -> int:
        if cluster[victim] != cluster[aggressor]:
            return whole.slowdown_permille[place[cluster[victim]]][place[cluster[aggressor]]]
        return 0 if cores[victim] & cores[aggressor] or victim == aggressor else inside

    place = {unit: index for index, unit in enumerate(whole.units)}
    names = phone.platform.unit_names
    return replace(
        whole,
        units=names,
        slowdown_permille=tuple(tuple(base(victim, other) for other in names) for victim in names),
        provenance=replace(
            whole.provenance,
            notes=f"Groups of cores of one cluster: {VICTIM} beside {AGGRESSOR} is slowed by "
            f"{IN_CLUSTER:.0%}, as printed (Fig. 10); to other units they are as their cluster. "
            f"{whole.provenance.notes}",
        ),
    )


def _cores(cluster: str, span: tuple[int, int]) -> tuple[int, ...]:
    return tuple(range(_FIRST_CORE[cluster] + span[0], _FIRST_CORE[cluster] + span[1]))


def _name(cluster: str, span: tuple[int, int]) -> str:
    return f"{cluster}-{''.join(map(str, _cores(cluster, span)))}"


def _cluster(unit: str) -> str:
    return unit.partition("-")[0]
