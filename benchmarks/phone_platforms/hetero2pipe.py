"""The three phones of Hetero2Pipe: what the paper prints of them, and what was made of that.

The shipped files of each phone follow from this module and the descriptions of the ten networks;
`python -m benchmarks.phone_platforms` writes them. The paper prints few numbers. Everything else is an
estimate, and each is said here:

* Kirin 990. The rates of its big cores and of its GPU are fitted to Table II, the rate of its NPU to "over
  100 FPS for ResNet50" (Section I). Bandwidths, and the times of launches and copies, are guesses; those
  of CPU and GPU are half of the "20 Gbps" below which the paper puts the memory bandwidth (read as gigabytes,
  since Table II would be out of reach otherwise), that of the NPU all of it.
* Its little cores have no number ("CPU Big >= GPU >> CPU Small"). Four cores of 8 operations a cycle
  (one 128-bit multiplication with addition) against four of 16 are 2.7 times as slow at the printed clocks;
  in-order cores also reach less of it. 3.4 times is taken for operations and 2.9 times for bytes.
* Snapdragon 778G: Kirin's units with one speed-up, fitted to "MobileNetV2 at 76 FPS" on its big cores, and
  corrected by the printed clocks for the little ones. "ResNet50 (FP16) at 30 FPS on CPUs" is taken over as
  it is printed, for its big cores, and its other units follow; all other networks compute with 32 bits.
* Snapdragon 870: the 778G by the ratio of the clocks.
* The paper names no NPU of the two Snapdragons (their NPU backend would be another one than the HiAI that
  it uses), so they have three units.
* Contention: see `contention`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from gapless.formulations.hardware import EngineSettings, Platform, ProcessingUnit, UnitKind
from gapless.formulations.network import Network
from gapless.profiler.analytic.costs import time_of
from gapless.profiler.analytic.model import AnalyticModel, KnownTotal, UnitModel
from gapless.profiler.slowdown.contention.paper import table_ii

from .fitting import fit_rates

PAPER = (
    "Shen et al., Hetero2Pipe: Pipelining Multi-DNN Inference on Heterogeneous Mobile Processors under "
    "Co-Execution Slowdown"
)
PAPER_NETWORKS = (
    "alexnet",
    "bert",
    "googlenet",
    "inceptionv4",
    "mobilenetv2",
    "resnet50",
    "squeezenet",
    "vgg16",
    "vit",
    "yolov4",
)
"""The ten networks of Section VI-A."""

LITTLE_OPERATIONS, LITTLE_BYTES = 3.4, 2.9
"""How many times as slow as the big cores the little ones are; estimated, see above."""

BIG, LITTLE = "cpu_big", "cpu_little"
"""Names of the CPU clusters; the paper calls them CPU_B and CPU_S."""

_NPU = ProcessingUnit(name="npu", kind=UnitKind.NPU, engine=EngineSettings(backend="hiai"))
_BIG_CORES = ProcessingUnit(name=BIG, kind=UnitKind.CPU, threads=4)
_GPU = ProcessingUnit(name="gpu", kind=UnitKind.GPU, engine=EngineSettings(backend="opencl"))
_LITTLE_CORES = ProcessingUnit(name=LITTLE, kind=UnitKind.CPU, threads=4)

_CPU_GUESS = UnitModel(
    unit=BIG,
    flops_per_us=50_000,  # where the fit starts
    product_flops_per_us=50_000,
    bytes_per_us=10_000,
    launch_us=50,
    copy_us=40,
    copy_bytes_per_us=4_000,
)
_GPU_GUESS = replace(_CPU_GUESS, unit="gpu", launch_us=80, copy_us=300)
_NPU_GUESS = replace(
    _CPU_GUESS,
    unit="npu",
    launch_us=20,
    copy_us=500,
    bytes_per_us=40_000,  # 20 GB/s of numbers of 16 bits, counted as 32
    unsupported=("Erf", "Softplus"),
)

_NPU_RESNET50 = KnownTotal(
    network="resnet50",
    total_us=10_000,
    printed=True,
    source="Section I: over 100 FPS, taken as 100",
)
_SD778G_MOBILENETV2 = KnownTotal(
    network="mobilenetv2", total_us=round(1_000_000 / 76), printed=True, source="Section I: 76 FPS"
)
_SD778G_RESNET50 = KnownTotal(
    network="resnet50",
    total_us=round(1_000_000 / 30),
    printed=True,
    source="Section I: 30 FPS with 16 bits on CPUs, taken for the big cores",
)

_ESTIMATES = (
    "All other times are computed: rates fitted to the printed times, bandwidths and the times of launches "
    "and copies guessed, little cores from the clocks. The paper prints neither the number of tokens of BERT "
    "(128 here) nor times by layer: the layers of a printed network share its time as they were computed."
)
_NPU_NOTE = (
    "The paper says that YOLOv4 and BERT fail on the NPU, not why: of their operators, MNN has no code for "
    "the Softplus of Mish and the Erf of GELU there (github.com/alibaba/MNN, source/backend/hiai/execution/"
    "NPUUnary.cpp). ViT has GELU too; the paper does not speak of it."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Clocks:
    """Clock rates of all cores, MHz, as Section VI-A prints them."""

    big: tuple[int, ...]
    little: tuple[int, ...]


KIRIN_CLOCKS = _Clocks(big=(2860, 2860, 2090, 2090), little=(1860,) * 4)
"""Of the cores of the Kirin 990."""

_SD778G = _Clocks(big=(2400, 2200, 2200, 2200), little=(1900,) * 4)
_SD870 = _Clocks(big=(3200, 2420, 2420, 2420), little=(1800,) * 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Phone:
    """One phone, as its files are written.

    `platform`, `model`: see the types.
    """

    platform: Platform
    model: AnalyticModel

    @property
    def big_cores(self) -> UnitModel:
        """The model of its big cores."""
        return next(unit for unit in self.model.units if unit.unit == BIG)


_KIRIN_PLATFORM = Platform(
    name="kirin990",
    units=(_NPU, _BIG_CORES, _GPU, _LITTLE_CORES),
    memory_bytes=2_500_000_000,
    source=f"{PAPER}, Section VI-A: CPU of 2 A76 at 2.86 GHz, 2 A76 at 2.09 GHz (cpu_big) and 4 A55 at "
    "1.86 GHz (cpu_little), 16-core Mali-G76, DaVinci NPU. Memory: Section VI-D, about 2.5 GB available. The "
    "paper takes clusters as a whole, because cores of one cluster slow each other down by up to 70 % "
    "(Fig. 10).",
)


def phones(networks: Sequence[Network]) -> tuple[Phone, ...]:
    """Return the three phones, their models fitted to the ten networks (in any order)."""
    known = {network.name: network for network in networks}
    kirin = _kirin_units(known)
    slow = _snapdragon_778g_units(kirin, known)
    fast = _faster_units(slow, "snapdragon778g", *_clock_ratios(_SD778G, _SD870))
    return (
        Phone(platform=_KIRIN_PLATFORM, model=_model(kirin, _NPU_NOTE)),
        Phone(
            platform=_snapdragon(
                "snapdragon778g",
                "1 A78 at 2.40 GHz, 3 A78 at 2.20 GHz (cpu_big) and 4 A55 at 1.90 GHz (cpu_little)",
                "Adreno 642L",
            ),
            model=_model(
                slow, "Units as those of the Kirin 990, faster by one factor fitted to MobileNetV2."
            ),
        ),
        Phone(
            platform=_snapdragon(
                "snapdragon870",
                "1 A77 at 3.20 GHz, 3 A77 at 2.42 GHz (cpu_big) and 4 A55 at 1.80 GHz (cpu_little)",
                "Adreno 650",
            ),
            model=_model(fast, "Units as those of the Snapdragon 778G, faster by the ratio of the clocks."),
        ),
    )


def _model(units: tuple[UnitModel, ...], note: str) -> AnalyticModel:
    return AnalyticModel(units=units, source=PAPER, notes=f"{_ESTIMATES} {note}")


def _snapdragon(name: str, cpu: str, gpu: str) -> Platform:
    return Platform(
        name=name,
        units=(_BIG_CORES, _GPU, _LITTLE_CORES),
        source=f"{PAPER}, Section VI-A: CPU of {cpu}, {gpu}. The paper names no NPU of this phone, and no "
        "memory that is available.",
    )


def _kirin_units(known: Mapping[str, Network]) -> tuple[UnitModel, ...]:
    guesses = (
        replace(_NPU_GUESS, totals=(_NPU_RESNET50,)),
        *(replace(guess, totals=_table_ii_totals(guess.unit)) for guess in (_CPU_GUESS, _GPU_GUESS)),
    )
    npu, big, gpu = (fit_rates(guess, list(known.values())) for guess in guesses)
    little = slower(big, LITTLE, operations=LITTLE_OPERATIONS, moves=LITTLE_BYTES)
    return (npu, big, gpu, following(little, big, known))


def _table_ii_totals(unit: str) -> tuple[KnownTotal, ...]:
    alone_us = {one.victim: round(one.alone_us[0]) for one in table_ii() if one.victim_unit == unit}
    return tuple(
        KnownTotal(network=network, total_us=total_us, printed=True, source="Table II")
        for network, total_us in alone_us.items()
    )


def following(unit: UnitModel, big: UnitModel, known: Mapping[str, Network]) -> UnitModel:
    """Return a unit that also has the known totals of the big cores, by the ratio of computed times."""

    def follow_us(total: KnownTotal) -> float:
        computed = [_computed_us(known[total.network], each) for each in (unit, big)]
        return total.total_us * computed[0] / computed[1]

    totals = _derived(big, follow_us, f"from {big.unit}, by the ratio of computed times")
    own = {total.network for total in unit.totals}
    return replace(unit, totals=(*unit.totals, *(total for total in totals if total.network not in own)))


def _computed_us(network: Network, unit: UnitModel) -> float:
    time = time_of(network, replace(unit, totals=()))
    assert time is not None, f"{unit.unit} runs everything"
    return time.of(1)


def _snapdragon_778g_units(kirin: Sequence[UnitModel], known: Mapping[str, Network]) -> tuple[UnitModel, ...]:
    printed = (_SD778G_MOBILENETV2, _SD778G_RESNET50)
    speed = _computed_us(known["mobilenetv2"], kirin[1]) / _SD778G_MOBILENETV2.total_us
    big_clocks, little_clocks = _clock_ratios(KIRIN_CLOCKS, _SD778G)
    little_speed = speed * little_clocks / big_clocks
    big, gpu, little = _faster_units(kirin[1:], "kirin990", speed, little_speed)
    big = replace(big, totals=(*printed, *big.totals))
    return (big, following(gpu, big, known), following(little, big, known))


def _faster_units(
    units: Sequence[UnitModel], phone: str, speed: float, little_speed: float
) -> tuple[UnitModel, ...]:
    """Return the CPUs and the GPU of another phone, which is as fast against them as its big cores are."""
    return tuple(
        _faster(unit, f"{phone}, {one:.3f} times as fast", one)
        for unit in units
        for one in [little_speed if unit.unit == LITTLE else speed]
    )


def _clock_ratios(old: _Clocks, new: _Clocks) -> tuple[float, float]:
    return sum(new.big) / sum(old.big), sum(new.little) / sum(old.little)


def _faster(unit: UnitModel, source: str, speed: float) -> UnitModel:
    other = slower(unit, unit.unit, operations=1 / speed, moves=1 / speed)
    return replace(
        other,
        copy_us=round(unit.copy_us / speed),
        copy_bytes_per_us=round(unit.copy_bytes_per_us * speed),
        totals=_derived(unit, lambda total: total.total_us / speed, source),
    )


def slower(unit: UnitModel, name: str, *, operations: float, moves: float) -> UnitModel:
    """Return a unit that is so many times as slow for operations, and for bytes; without known totals."""
    return replace(
        unit,
        unit=name,
        flops_per_us=round(unit.flops_per_us / operations),
        product_flops_per_us=round(unit.product_flops_per_us / operations),
        bytes_per_us=round(unit.bytes_per_us / moves),
        launch_us=round(unit.launch_us * moves),
        totals=(),
    )


def _derived(unit: UnitModel, time_us: Callable[[KnownTotal], float], source: str) -> tuple[KnownTotal, ...]:
    return tuple(
        replace(total, total_us=round(time_us(total)), printed=False, source=source) for total in unit.totals
    )
