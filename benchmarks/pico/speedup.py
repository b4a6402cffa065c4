"""Figure 12: the speed-up of ResNet34 and InceptionV3 over one device, by clock, pieces against blocks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from ..pieces import network_of
from ..printing import Part, Statement, beside, near, titled
from .testbed import PaperDevices, labels, least_us, problem_on

CLOCKS = (0.6, 0.8, 1.0, 1.2, 1.5)
DEVICES = range(1, 9)

PRINTED = {
    ("resnet34", False): 6.8,
    ("inceptionv3", False): 6.5,
    ("resnet34", True): 5.0,
    ("inceptionv3", True): 4.0,
}
"""(network, whole blocks): the largest speed-up as printed, with 8 devices at a low clock (6.2.2)."""


@cache
def speedups(bed: PaperDevices, name: str, ghz: float, *, blocks: bool, charged: bool) -> tuple[float, ...]:
    """Return the speed-up of the best plan given the pieces, with 1 to 8 devices that are all alike."""
    network = network_of(name)
    pieces = labels(network, blocks=blocks)
    periods = [
        least_us(problem_on(network, pieces, bed.pis(*[ghz] * count), charged=charged)) for count in DEVICES
    ]
    return tuple(periods[0] / period for period in periods)


def figure_12(bed: PaperDevices) -> Iterator[Part]:
    """Yield the speed-ups, messages between groups charged and not."""
    for name in dict.fromkeys(name for name, _ in PRINTED):
        for charged in (False, True):
            how = "charged" if charged else "not charged, as in the paper's Eq. 11"
            table = titled(
                f"Fig. 12, {name}: speed-up over one device (/ paper); messages between groups {how}",
                "GHz, cut between", *(str(count) for count in DEVICES),
            )  # fmt: skip
            for blocks in (True, False):
                for ghz in CLOCKS:
                    found = speedups(bed, name, ghz, blocks=blocks, charged=charged)
                    printed = f"{PRINTED[name, blocks]:g}" if ghz == CLOCKS[0] else None
                    cells = [*(f"{value:.2f}" for value in found[:-1]), beside(f"{found[-1]:.2f}", printed)]
                    table.add_row(f"{ghz:g} {'blocks' if blocks else 'pieces'}", *cells)
            yield table
    yield _range_statement(bed)
    yield _clock_statement(bed)
    yield _pieces_statement(bed)


def _range_statement(bed: PaperDevices) -> Statement:
    found = [
        speedups(bed, name, ghz, blocks=False, charged=True)
        for name in ("resnet34", "inceptionv3")
        for ghz in CLOCKS
    ]
    least, most = min(row[1] for row in found), max(row[-1] for row in found)
    text = f"{least:.2f} times at least with 2 devices, {most:.2f} at most with 8 (pieces, charged)"
    holds = near(least, 1.8) and near(most, 6.8)
    return Statement("1.8 to 6.8 times with 2 to 8 devices (abstract)", text, holds)


def _clock_statement(bed: PaperDevices) -> Statement:
    """Return whether low clocks gain most, with messages charged: without them only shares count."""
    low, high = (
        [speedups(bed, name, ghz, blocks=blocks, charged=True)[-1] for name, blocks in PRINTED]
        for ghz in (CLOCKS[0], CLOCKS[-1])
    )
    found = f"charged, 8 devices: {low[0]:.2f} at 0.6 GHz, {high[0]:.2f} at 1.5 GHz (ResNet34, pieces)"
    holds = all(one > other for one, other in zip(low, high, strict=True))
    return Statement("the speed-up is larger at a low clock", found, holds)


def _pieces_statement(bed: PaperDevices) -> Statement:
    names = ("resnet34", "inceptionv3")

    def last(name: str, *, blocks: bool, charged: bool = False) -> float:
        return speedups(bed, name, 0.6, blocks=blocks, charged=charged)[-1]

    gains = {name: last(name, blocks=False) / last(name, blocks=True) for name in names}
    charged = [
        last(name, blocks=False, charged=True) / last(name, blocks=True, charged=True) for name in names
    ]
    found = ", ".join(f"{name} {gain:.2f} times" for name, gain in gains.items())
    return Statement(
        "pieces beat whole blocks: 6.8 / 5 = 1.36 times for ResNet34, 6.5 / 4 = 1.63 for InceptionV3",
        f"{found} (not charged, 0.6 GHz, 8 devices); charged {charged[0]:.2f} and {charged[1]:.2f}",
        all(near(gains[name], PRINTED[name, False] / PRINTED[name, True]) for name in names),
    )
