"""The shipped files of the phones, from the built-in networks and what the papers print."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gapless.executor.graph.inspection import divided, operator_text
from gapless.executor.graph.onnx_model import load_onnx
from gapless.formulations.coordination.scenario import BEHAVIOUR
from gapless.formulations.files import INTERFERENCE, NETWORK, PLATFORM, dump
from gapless.formulations.network import Network
from gapless.formulations.operators import excluded
from gapless.profiler.analytic.model import ANALYTIC
from gapless.profiler.zoo.catalog import zoo_path
from gapless.profiler.zoo.tables import operators_of

from .band import LACKING, coordinated_phones
from .behaviours import behaviour_of
from .contention import phone_interference
from .cores import NAME, divided_interference, divided_kirin
from .hetero2pipe import phones


def describe_hetero2pipe(name: str) -> Network:
    """Return the layers of a built-in network; its file is not named, because plans for phones do not run it.

    Raises InvalidModelError: the network cannot be built.
    """
    network = load_onnx(zoo_path(name), name=name).network
    return replace(network, models=(), source=f"built-in network {name}, one layer for what a runtime fuses")


def hetero2pipe_files(networks: Sequence[Network]) -> Iterator[tuple[str, str]]:
    """Yield path and text of every shipped file about Hetero2Pipe's phones, relative to `profiler/platforms`.

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
            cores = divided_kirin(kirin, networks)
            yield f"{NAME}/platform.json", dump(cores.platform, PLATFORM)
            yield f"{NAME}/analytic.json", dump(cores.model, ANALYTIC)
            yield f"{NAME}/interference.json", dump(divided_interference(interference, cores), INTERFERENCE)


def describe_band(name: str) -> Network:
    """Return the layers of a built-in network; operators that some unit lacks are layers of their own.

    Layers have their operators with attributes, which rules about units can name.

    Raises InvalidModelError: the network cannot be built.
    """
    graph = operators_of(name)
    lacking = [bool(excluded([operator_text(operator)], LACKING)) for operator in graph.operators]
    source = f"built-in network {name}, one layer for what a runtime fuses, and for what some units lack"
    network, _ = divided(graph, lacking, name=name, source=source)
    return network


def band_files(networks: Sequence[Network]) -> Iterator[tuple[str, str]]:
    """Yield path and text of every shipped file about Band's phones, relative to `profiler/coordination`."""
    for network in networks:
        yield f"networks/{network.name}.json", dump(network, NETWORK)
    for phone in coordinated_phones(networks):
        folder = f"phones/{phone.platform.name}"
        yield f"{folder}/platform.json", dump(phone.platform, PLATFORM)
        yield f"{folder}/analytic.json", dump(phone.model, ANALYTIC)
        yield f"{folder}/behaviour.json", dump(behaviour_of(phone.platform.name), BEHAVIOUR)
