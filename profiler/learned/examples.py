"""From measured devices to what predictors are trained on and judged by."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .device import DeviceDescription, Embedding, NetworkTimes, embed
from .features import NetworkFeatures
from .measuring import YARDSTICKS

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEAST_US = 3.0
"""Layers that take less are mostly clock and noise: they count in shards only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceType:
    """One kind of device in a data set: a unit, by one engine."""

    name: str  # "ENGINE UNIT"
    embedding: Embedding  # from the yardsticks alone, as for a device that is new
    times: tuple[NetworkTimes, ...]  # all networks that ran there
    emulated: bool  # whether by a quota


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """Networks by name, and how long they took on which types of devices."""

    networks: dict[str, NetworkFeatures]
    types: tuple[DeviceType, ...]

    def select(
        self, *, networks: Collection[str] | None = None, types: Collection[str] | None = None
    ) -> Dataset:
        """Return the part with some networks and device types, by name; embeddings stay as they are."""
        chosen = self.networks if networks is None else networks
        return Dataset(
            networks={name: one for name, one in self.networks.items() if name in chosen},
            types=tuple(
                replace(kind, times=tuple(entry for entry in kind.times if entry.network in chosen))
                for kind in self.types
                if types is None or kind.name in types
            ),
        )


def dataset_of(descriptions: Sequence[DeviceDescription]) -> Dataset:
    """Return a data set from measured devices.

    A device type is described by the yardsticks; one that ran none of them by all that it ran.
    """
    networks = {one.network: one for found in descriptions for one in found.networks}
    several = len({found.device for found in descriptions}) > 1
    times: dict[str, list[NetworkTimes]] = {}
    emulated: dict[str, bool] = {}
    for found in descriptions:
        for entry in found.times:
            name = f"{found.engine} {entry.unit}" + (f" of {found.device}" if several else "")
            times.setdefault(name, []).append(entry)
            emulated[name] = found.unit(entry.unit).emulated
    return Dataset(
        networks=networks,
        types=tuple(
            DeviceType(
                name=name,
                embedding=embed(
                    name,
                    tuple(networks.values()),
                    [entry for entry in entries if entry.network in YARDSTICKS] or entries,
                ),
                times=tuple(entries),
                emulated=emulated[name],
            )
            for name, entries in times.items()
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A shard on a device type.

    `network`, `kind`: names of both; `start`, `stop`: its layers.
    """

    network: str
    kind: DeviceType
    start: int
    stop: int
    run_us: float  # what it took, without what its session costs: that of the device type
    layer_us: NDArray[Any] | None
    """Its layers alone, where they were measured; those below `LEAST_US` are not a number."""


def examples(data: Dataset) -> Iterator[Example]:
    """Return all shards and wholes of a data set."""
    import numpy as np

    for kind in data.types:
        for entry in kind.times:
            layers = np.array(entry.layer_us) if entry.layer_us else None
            if layers is not None:
                layers = np.where(layers < LEAST_US, np.nan, layers)
            for span in entry.spans:
                yield Example(
                    network=entry.network,
                    kind=kind,
                    start=span.start,
                    stop=span.stop,
                    run_us=max(span.run_us - kind.embedding.session_us, 0.5 * span.run_us),
                    layer_us=None if layers is None else layers[span.start : span.stop],
                )
