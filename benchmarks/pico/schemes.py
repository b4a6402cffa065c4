"""Figures 13 to 16 and Table 5: PICO against schemes in which all devices share every request."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from statistics import mean

from ..printing import Part, Statement, beside, near, titled
from .testbed import Account, PaperDevices, by_scheme, labels, planned, problem_on, trunk

SCHEMES = ("lw", "efl", "ofl", "ce")
PLANNERS = ("pico", "native")
NAMES = {"pico": "PICO", "native": "exact"}
CLOCKS = (0.6, 0.8, 1.0)
DEVICES = range(1, 9)

CLOCKS_5 = ("NX 2.2", "NX 2.2", "Pi 1.5", "Pi 1.5", "Pi 1.2", "Pi 1.2", "Pi 0.8", "Pi 0.8")

Printed = tuple[tuple[float, ...], tuple[float, ...], float]

TABLE_5: dict[tuple[str, str], Printed] = {
    ("vgg16", "ce"): (
        (80.87, 82.13, 69.37, 59.97, 57.91, 36.56, 23.11, 17.33),
        (2.02, 1.93, 1.29, 2.06, 1.30, 1.41, 1.32, 0.77),
        158.1,
    ),
    ("vgg16", "efl"): (
        (32.43, 39.79, 72.58, 75.08, 94.23, 96.77, 64.09, 64.16),
        (11.02, 11.60, 19.08, 19.83, 18.58, 19.22, 12.78, 13.42),
        163.6,
    ),
    ("vgg16", "ofl"): (
        (38.90, 40.19, 60.87, 61.79, 85.34, 94.15, 76.54, 80.46),
        (7.45, 7.67, 11.12, 11.39, 10.33, 10.53, 8.15, 8.31),
        153.4,
    ),
    ("vgg16", "pico"): (
        (91.21, 93.28, 83.12, 79.40, 47.63, 66.26, 68.17, 90.15),
        (11.08, 10.97, 5.82, 3.83, 6.93, 5.55, 0.00, 3.83),
        124.5,
    ),
    ("yolov2", "ce"): (
        (76.85, 75.46, 65.81, 66.94, 46.32, 46.77, 22.49, 20.21),
        (0.82, 0.76, 0.87, 0.83, 0.79, 0.71, 0.68, 0.61),
        248.1,
    ),
    ("yolov2", "efl"): (
        (37.85, 35.64, 67.24, 67.61, 96.01, 95.28, 75.87, 72.81),
        (27.09, 27.09, 45.08, 45.08, 44.68, 44.68, 29.29, 29.29),
        194.3,
    ),
    ("yolov2", "ofl"): (
        (39.28, 37.03, 69.47, 68.92, 97.02, 95.99, 77.61, 73.94),
        (25.98, 25.98, 44.51, 44.51, 44.86, 44.86, 28.12, 28.12),
        198.3,
    ),
}
"""Utilisation and redundancy by device in per cent, mean memory in MB, as printed.

In our copy of the paper the fourth row has no network of its own and the seventh is labelled PICO: by their
places and by the text (OFL redoes more than PICO) they are taken as VGG16/PICO and YOLOv2/OFL.
"""


@cache
def alike(
    bed: PaperDevices, name: str, ghz: float, devices: int, how: str, *, charged: bool = False
) -> Account:
    """Return what a scheme or planner costs on devices that are all alike; `charged`: between groups, too."""
    network = trunk(name)
    cluster = bed.pis(*[ghz] * devices)
    problem = problem_on(network, labels(network), cluster, charged=charged)
    return by_scheme(problem, how) if how in SCHEMES else planned(problem, how)


@cache
def unlike(bed: PaperDevices, name: str, how: str, *, charged: bool = False) -> Account:
    """Return the same on the two TX2 NX and six Raspberry Pis."""
    network = trunk(name)
    problem = problem_on(network, labels(network), bed.unlike, charged=charged)
    return by_scheme(problem, how) if how in SCHEMES else planned(problem, how)


def compared(planners: tuple[str, ...] = ("pico",)) -> Iterator[tuple[str, str, bool]]:
    """Yield (label, scheme or planner, whether messages between groups are charged)."""
    for how in SCHEMES:
        yield how.upper(), how, False
    for how in planners:
        yield NAMES[how], how, False
        yield f"{NAMES[how]}, charged", how, True


def figure_13(bed: PaperDevices) -> Iterator[Part]:
    """Yield the periods of VGG16."""
    yield from _capacity(bed, "13", "vgg16")


def figure_14(bed: PaperDevices) -> Iterator[Part]:
    """Yield the periods of YOLOv2."""
    yield from _capacity(bed, "14", "yolov2")


def _capacity(bed: PaperDevices, figure: str, name: str) -> Iterator[Part]:
    table = titled(
        f"Fig. {figure}, {name}: period in seconds by devices, and requests a minute of 8",
        "GHz, scheme", *(str(count) for count in DEVICES), "a minute",
    )  # fmt: skip
    for ghz in CLOCKS:
        for label, how, charged in compared():
            periods = [
                alike(bed, name, ghz, count, how, charged=charged).period_us / 1e6 for count in DEVICES
            ]
            cells = (*(f"{period:.2f}" for period in periods), f"{60 / periods[-1]:.1f}")
            table.add_row(f"{ghz:g} {label}", *cells)
    yield table

    def period(how: str, ghz: float, devices: int = 8) -> int:
        return alike(bed, name, ghz, devices, how).period_us

    others = [min(period(how, ghz) for how in SCHEMES) / period("pico", ghz) for ghz in CLOCKS]
    yield Statement(
        "PICO has the shortest period of all",
        f"with 8 devices {min(others):.2f} to {max(others):.2f} times as fast as the best other scheme",
        min(others) > 1,
    )
    for better, worse in (("ce", "lw"), ("ofl", "efl")):
        gains = [period(worse, ghz) / period(better, ghz) for ghz in CLOCKS]
        text = f"with 8 devices {min(gains):.2f} to {max(gains):.2f} times as fast"
        yield Statement(f"{better.upper()} outperforms {worse.upper()}", text, min(gains) > 1)
    gains = [period("lw", ghz, 2) / period("lw", ghz) for ghz in CLOCKS]
    yield Statement(
        "LW gains by more devices" + (", but for 1 GHz" if name == "yolov2" else ""),
        "8 against 2 devices: "
        + ", ".join(f"{n:.2f} ({ghz:g} GHz)" for n, ghz in zip(gains, CLOCKS, strict=True)),
        min(gains[:2]) > 1 and (gains[2] > 1.05) == (name != "yolov2"),
    )
    gains = [period(how, ghz, 4) / period(how, ghz) for ghz in CLOCKS for how in ("efl", "ofl")]
    yield Statement(
        "from 4 devices on EFL and OFL gain very little",
        f"8 devices are {min(gains):.2f} to {max(gains):.2f} times as fast as 4",
        max(gains) < 1.25,
    )


def figure_15(bed: PaperDevices) -> Iterator[Part]:
    """Yield the memory of each device, weights and features apart."""
    for name in ("vgg16", "yolov2"):
        table = titled(
            f"Fig. 15, {name}, 1 GHz: mean MB of a device, weights + features",
            "scheme", *(str(count) for count in DEVICES),
        )  # fmt: skip
        for how in ("lw", "efl", "ofl", "pico"):
            found = [alike(bed, name, 1.0, count, how) for count in DEVICES]
            cells = (f"{mean(one.weight_bytes) / 1e6:.1f} + {one.feature_bytes / 1e6:.1f}" for one in found)
            table.add_row(NAMES.get(how, how.upper()), *cells)
        yield table
        eight = {how: alike(bed, name, 1.0, 8, how) for how in ("lw", "efl", "ofl", "pico")}
        weights = {how: mean(one.weight_bytes) / 1e6 for how, one in eight.items()}
        yield Statement(
            "only PICO divides the weights",
            "with 8 devices " + ", ".join(f"{how.upper()} {size:.1f} MB" for how, size in weights.items()),
            all(weights["pico"] < size for how, size in weights.items() if how != "pico"),
        )


def figure_16(bed: PaperDevices) -> Iterator[Part]:
    """Yield the energy of a request on unlike devices, computing and standby apart."""
    for name in ("vgg16", "yolov2"):
        table = titled(
            f"Fig. 16, {name}, unlike devices: joules of a request (powers are assumed)",
            "scheme", "computing", "standby", "sum",
        )  # fmt: skip
        found: dict[str, Account] = {}
        for label, how, charged in compared(PLANNERS):
            if how != "lw":
                found[label] = one = unlike(bed, name, how, charged=charged)
                energies = one.computing_nj, one.standby_nj, one.computing_nj + one.standby_nj
                table.add_row(label, *(f"{value / 1e9:.2f}" for value in energies))
        yield table
        sums = {label: one.computing_nj + one.standby_nj for label, one in found.items()}
        schemes = [label for label in sums if label in {"CE", "EFL", "OFL"}]
        order = sorted((*schemes, "PICO"), key=sums.__getitem__)
        yield Statement("most energy: EFL", f"least first: {', '.join(order)}", order[-1] == "EFL")
        standby = found["CE"].standby_nj / sums["CE"]
        yield Statement("most of CE's is standby", f"{100 * standby:.0f} %", standby > 0.5)
        yield Statement(
            "PICO has the least standby, and less energy than CE",
            f"standby {found['PICO'].standby_nj / 1e9:.2f} J, in all {sums['PICO'] / sums['CE']:.2f} of CE's",
            all(found["PICO"].standby_nj < found[one].standby_nj for one in schemes)
            and sums["PICO"] < sums["CE"],
        )


def table_5(bed: PaperDevices) -> Iterator[Part]:
    """Yield utilisation, redundancy and memory of each device of the unlike ones."""
    for name in ("vgg16", "yolov2"):
        table = titled(f"Table 5, {name}: here / paper", "scheme", "", *CLOCKS_5, "mean")
        for label, how, charged in compared(PLANNERS):
            if how != "lw":
                printed = None if charged else TABLE_5.get((name, how))
                for place, row in enumerate(_rows(unlike(bed, name, how, charged=charged), printed)):
                    table.add_row("" if place else label, *row)
        yield table
    found = {how: 100 * mean(unlike(bed, "yolov2", how).redundant) for how in ("ofl", "pico")}
    yield Statement(
        "YOLOv2: 7.64 % of PICO's operations are redundant, 12.08 % of OFL's (6.4.2)",
        f"{found['pico']:.2f} % and {found['ofl']:.2f} %",
        near(found["pico"], 7.64) and near(found["ofl"], 12.08),
    )


def _rows(one: Account, printed: Printed | None) -> Iterator[list[str]]:
    """Yield what each device does and holds, beside the print."""
    theirs = (None, None) if printed is None else printed[:2]
    for what, values, paper in zip(("busy %", "redundant %"), (one.busy, one.redundant), theirs, strict=True):
        known = (None,) * len(values) if paper is None else tuple(f"{value:.0f}" for value in paper)
        cells = (beside(f"{100 * own:.0f}", text) for own, text in zip(values, known, strict=True))
        average = None if paper is None else f"{mean(paper):.1f}"
        yield [what, *cells, beside(f"{100 * mean(values):.1f}", average)]
    sizes = [f"{size / 1e6:.0f}" for size in one.memory_bytes]
    average = None if printed is None else f"{printed[2]:g}"
    yield ["MB", *sizes, beside(f"{mean(one.memory_bytes) / 1e6:.1f}", average)]
