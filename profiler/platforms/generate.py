"""Writing the shipped files of the phones anew, from the built-in networks and what the paper prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...executor.graph.onnx_model import load_onnx
from ...formulations.files import INTERFERENCE, NETWORK, PLATFORM, dump
from ...formulations.network import Network
from ..analytic.model import ANALYTIC
from ..zoo.catalog import zoo_path
from .phone_contention import phone_interference
from .phone_cores import NAME, divided, divided_interference
from .phones import phones


def describe(name: str) -> Network:
    """Return the layers of a built-in network; its file is not named, because plans for phones do not run it.

    Raises InvalidModelError: the network cannot be built.
    """
    network = load_onnx(zoo_path(name), name=name).network
    return replace(network, models=(), source=f"built-in network {name}, one layer for what a runtime fuses")


def documents(networks: Sequence[Network]) -> Iterator[tuple[str, str]]:
    """Yield path and text of every shipped file about the phones; paths are relative to this folder.

    `networks`: the ten networks of the paper.
    """
    for network in networks:
        yield f"phone-networks/{network.name}.json", dump(network, NETWORK)
    kirin, *others = phones(networks)
    for phone in (kirin, *others):
        name = phone.platform.name
        interference = phone_interference(phone.platform, networks, kirin.big_cores)
        yield f"{name}/platform.json", dump(phone.platform, PLATFORM)
        yield f"{name}/analytic.json", dump(phone.model, ANALYTIC)
        yield f"{name}/interference.json", dump(interference, INTERFERENCE)
        if phone is kirin:
            cores = divided(kirin, networks)
            yield f"{NAME}/platform.json", dump(cores.platform, PLATFORM)
            yield f"{NAME}/analytic.json", dump(cores.model, ANALYTIC)
            yield f"{NAME}/interference.json", dump(divided_interference(interference, cores), INTERFERENCE)
