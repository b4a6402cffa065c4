"""Clusters whose devices live in this process, each with its endpoint and worker processes; no Ray."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from gapless.executor.cluster.cluster import Cluster
from gapless.executor.cluster.device import Device
from gapless.executor.cluster.endpoint import LinkRate
from gapless.executor.cluster.pipeline import ClusterPipeline
from gapless.executor.model import Model
from gapless.formulations.deployment import Deployment
from gapless.formulations.errors import UnitLostError
from gapless.formulations.hardware import ProcessingUnit
from gapless.formulations.plan import Chunk
from gapless.formulations.streams import Stream
from tests.executor.pipeline.fakes import ENGINE, cores


class OwnActor:
    """A device in this process that can be lost."""

    def __init__(self, name: str, settings: str, key: bytes) -> None:
        self.device = Device(settings, key)
        self._name = name
        self._loss = ""

    def call(self, method: str, *arguments: Any, **named: Any) -> Any:
        if self._loss:
            raise UnitLostError(f"device {self._name!r} is gone: {self._loss}")
        return getattr(self.device, method)(*arguments, **named)

    def loss(self) -> str:
        return self._loss

    def lose(self, words: str) -> None:
        """Be gone, as if its power had been cut: nothing more comes from there."""
        if not self._loss:
            self._loss = words
            self.device.shut_down()

    def kill(self) -> None:
        self.lose("it was ended")


class OwnMembers:
    """Devices by name, with the rate of what each sends."""

    own_host = "127.0.0.1"

    def __init__(self, rates: Mapping[str, LinkRate]) -> None:
        self._rates = rates
        self.actors: dict[str, OwnActor] = {}

    @property
    def hosts(self) -> Mapping[str, str]:
        return dict.fromkeys(self._rates, "127.0.0.1")

    def unit(self, name: str) -> ProcessingUnit | None:
        core = cores()[list(self._rates).index(name) % len(cores())]
        return ProcessingUnit(name=name, cores=(core,), threads=1)

    def rate(self, name: str) -> LinkRate:
        return self._rates[name]

    def start(self, name: str, settings: str, key: bytes) -> OwnActor:
        self.actors[name] = OwnActor(name, settings, key)
        return self.actors[name]

    def close(self) -> None:
        pass


@contextmanager
def own_cluster(*names: str, **rates: LinkRate) -> Iterator[tuple[Cluster, OwnMembers]]:
    """Start devices in this process."""
    members = OwnMembers({name: rates.get(name, LinkRate()) for name in names})
    with Cluster(members) as cluster:
        yield cluster, members


def over(model: Model, *parts: tuple[int, str], name: str = "", slots: int | None = None) -> Stream:
    """Return a stream through parts (layers, device)."""
    start, chunks = 0, []
    for layers, device in parts:
        chunks.append(Chunk(network=model.network.name, start=start, stop=start + layers, unit=device))
        start += layers
    return Stream(name=name or model.network.name, chunks=tuple(chunks), task_slots=slots)


def opened(cluster: Cluster, model: Model, *streams: Stream, **options: Any) -> ClusterPipeline:
    """Open streams of a fake model."""
    return ClusterPipeline(cluster, Deployment(streams=streams), model, ENGINE, **options)
