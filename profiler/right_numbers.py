"""Right numbers before times: a layer that an engine computes wrongly is left to engines that have it right.

Conversion can change what a layer computes without a word, quantised layers above all. Such an engine looks
fast in a profile, and every plan with it fails when its numbers are checked. So where several engines
compete, each runs the whole once, and if that is wrong or cannot be converted, every shortest chunk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..executor.model import allowed_of
from ..formulations.errors import ConversionError, ExecutionError, UnitLostError
from ..formulations.hardware import Platform, ProcessingUnit
from ..formulations.network import Network
from .measuring import Bench
from .preparing import MOST_NAMED, Preparer, Preparers
from .probes import Span, blocks


def distrust(network: Network, platform: Platform, preparers: Preparers, bench: Bench) -> list[str]:
    """Have engines refuse layers that they compute wrongly and others rightly; return notes.

    What all engines compute otherwise than the reference is refused by none: then the reference may be wrong.
    """
    checked = [
        _Checked(
            preparer, next(u for u in platform.units if preparers.of(u.name) is preparer), network, bench
        )
        for preparer in preparers.each
    ]
    notes = []
    for one in checked:
        others = [other for other in checked if other is not one]
        wrong = {s: e for s, e in one.wrong.items() if any(s in other.right for other in others)}
        if not wrong:
            continue
        names = [name for span in wrong for name in network.layer_names[slice(*span)]]
        listed = ", ".join(map(repr, names)) if len(names) <= MOST_NAMED else f"{len(names)} layers"
        reason = (
            f"wrong numbers, relative error up to {max(wrong.values()):.2g}, allowed is {one.allowed.error:g}"
        )
        notes.append(f"{one.preparer.engine} cannot run {listed}: {reason}")
        for span in [(0, len(network.layers)), *wrong]:
            one.preparer.refuse(span, ConversionError(f"layers {span[0]} to {span[1] - 1}: {reason}"))
    return notes


class _Checked:
    """Which of the shortest chunks an engine computes rightly and wrongly; the latter with their errors."""

    def __init__(self, preparer: Preparer, unit: ProcessingUnit, network: Network, bench: Bench) -> None:
        self.preparer = preparer
        self.allowed = allowed_of(network, [unit.engine.precision.value])
        self._unit, self._bench = unit.name, bench
        spans = blocks(network)
        whole = self._errors([(0, len(network.layers))])
        if whole and max(whole.values()) <= self.allowed.error:
            errors: Mapping[Span, float] = dict.fromkeys(spans, 0.0)
        else:
            errors = self._errors(spans)
        self.right = {span for span, error in errors.items() if error <= self.allowed.error}
        self.wrong = {span: error for span, error in errors.items() if span not in self.right}

    def _errors(self, spans: Sequence[Span]) -> dict[Span, float]:
        """Return the error of each range that can be converted and run."""
        refused, found = self.preparer.attempt(spans), dict[Span, float]()
        for span in spans:
            if span in refused:
                continue
            try:
                probes = self.preparer.probes(span)
                found[span] = max(
                    self._bench.error(self._unit, probe.prepared, allowed=self.allowed) for probe in probes
                )
            except UnitLostError:
                raise
            except ExecutionError:  # it is met again when times are measured, on every unit
                continue
        return found
