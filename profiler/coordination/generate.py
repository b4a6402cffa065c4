"""Writing the shipped files of Band's phones anew, from the built-in networks and what the paper prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...executor.graph.describing import divided, operator_text
from ...formulations.coordination.files import BEHAVIOUR
from ...formulations.files import NETWORK, PLATFORM, dump
from ...formulations.network import Network
from ...formulations.operators import excluded
from ..analytic.model import ANALYTIC
from ..zoo.tables import operators_of
from .behaviours import behaviour_of
from .phones import LACKING, coordinated_phones


def describe(name: str) -> Network:
    """Return the layers of a built-in network; operators that some unit lacks are layers of their own.

    Layers have their operators with attributes, which rules about units can name.

    Raises InvalidModelError: the network cannot be built.
    """
    graph = operators_of(name)
    lacking = [bool(excluded([operator_text(operator)], LACKING)) for operator in graph.operators]
    source = f"built-in network {name}, one layer for what a runtime fuses, and for what some units lack"
    network, _ = divided(graph, lacking, name=name, source=source)
    return network


def documents(networks: Sequence[Network]) -> Iterator[tuple[str, str]]:
    """Yield path and text of every shipped file about the phones; paths are relative to this folder."""
    for network in networks:
        yield f"networks/{network.name}.json", dump(network, NETWORK)
    for phone in coordinated_phones(networks):
        folder = f"phones/{phone.platform.name}"
        yield f"{folder}/platform.json", dump(phone.platform, PLATFORM)
        yield f"{folder}/analytic.json", dump(phone.model, ANALYTIC)
        yield f"{folder}/behaviour.json", dump(behaviour_of(phone.platform.name), BEHAVIOUR)
