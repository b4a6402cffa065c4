"""The quantities of plans whose units may have several chunks: those of chunking, with other upper bounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import ClassVar

from ..chain import Chain
from ..chunking import quantities as chunking
from ..chunking.quantities import PlanValues, idle_excess
from ..cycles import cycle_of
from ..terms import UNIT, Quantity, QuantityInfo, Term, TermInfo


def _most_chunks(chain: Chain, *_: int) -> int:
    """Return most chunks of one unit: between two of them is another one's."""
    return len(chain.cuts) // 2


def _most_busy_us(chain: Chain, unit: int) -> int:
    return chain.prefix_us[unit][chain.layer_count] + _most_chunks(chain) * chain.copies_us(unit)


def _most_load_us(chain: Chain) -> int:
    return max(sum(_most_busy_us(chain, unit) for unit in units) for units in chain.pools.values())


def _most_latency_us(chain: Chain) -> int:
    slowest = sum(max((t or 0 for t in row), default=0) for row in chain.layer_us)
    return slowest + (len(chain.cuts) - 1) * max(map(chain.copies_us, range(chain.unit_count)))


def _most_stream_latency_us(chain: Chain) -> int:
    return _most_latency_us(chain) + (len(chain.cuts) - 2) * _most_load_us(chain)


def _most_bytes(chain: Chain, *_: int) -> int:
    return chain.weights.whole + _most_chunks(chain) * max(chain.working_bytes, default=0)


def _most_energy_nj(chain: Chain) -> int:
    if chain.powers is None:
        return 0
    busy = {unit: _most_busy_us(chain, unit) for unit in range(chain.unit_count)}
    return chain.powers.energy_nj(busy, _most_load_us(chain))


_MOST: Mapping[str, Callable[..., int]] = {
    Quantity.BUSY: _most_busy_us,
    Quantity.MEMORY: _most_bytes,
    Quantity.PERIOD: _most_load_us,
    Quantity.GAPNESS: _most_load_us,
    Quantity.PAPER_GAPNESS: _most_load_us,
    Quantity.LATENCY: _most_latency_us,
    Quantity.BUBBLES: lambda chain: chain.unit_count * _most_load_us(chain),
    Quantity.PEAK: lambda chain: chain.unit_count * _most_bytes(chain),
    Quantity.ENERGY: _most_energy_nj,
    Quantity.HOPS: lambda chain: len(chain.cuts) - 2,
    Quantity.STREAM_LATENCY: _most_stream_latency_us,
    # latencies of all units, and less than a period of waits at each border
    Quantity.IN_FLIGHT: lambda chain: chain.unit_count + max(0, len(chain.cuts) - 2),
}

QUANTITIES: Mapping[str, QuantityInfo] = MappingProxyType(
    {name: replace(info, most=_MOST.get(name, info.most)) for name, info in chunking.QUANTITIES.items()}
    | {
        Quantity.CHUNKS: QuantityInfo(
            name=Quantity.CHUNKS,
            text="number of chunks on a unit",
            indices=(UNIT,),
            most=_most_chunks,
            read=lambda values, unit: len(values.chunks_of.get(unit, ())),
        )
    }
)
"""What rules can speak about."""


TERMS: Mapping[str, TermInfo] = MappingProxyType(
    dict(chunking.TERMS)
    | {
        Term.IDLE: replace(
            chunking.TERMS[Term.IDLE],
            excess=lambda chain, permille: idle_excess(chain, permille, QUANTITIES),
        ),
        Term.STREAM_LATENCY: replace(chunking.TERMS[Term.STREAM_LATENCY], costly=True),
        Term.IN_FLIGHT: replace(chunking.TERMS[Term.IN_FLIGHT], costly=True),
    }
)
"""What can be minimised."""


class PassageValues(PlanValues):
    """Every quantity of one well-formed plan; a unit may have several chunks."""

    terms = TERMS
    quantities: ClassVar[Mapping[str, QuantityInfo]] = QUANTITIES

    @property
    def stream_latency_us(self) -> int:
        """Latency in the cycle that is deployed, with the waits where requests come back to a unit."""
        if len(self.loads_us) == len(self.parts):
            return self.latency_us
        times_us = [self.chain.busy_us(*part) for part in self.parts]
        return cycle_of(times_us, [self.chain.resources[unit] for _, _, unit in self.parts]).latency_us
