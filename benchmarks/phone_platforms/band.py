"""The four phones of Band: what the paper prints of them, and what was made of that.

The shipped files of each phone follow from this module, `behaviours`, and the descriptions of the networks;
`python -m benchmarks.phone_platforms` writes them. The paper prints the time of InceptionV4 on seven units
(Table 1), which come out exactly, and which operators some units lack. Everything else is an estimate:

* Units. Two units of one thread on big cores, as in 6.1, on every phone; Mate 40 Pro, of which the paper
  says nothing more, gets them, too. The DSP of the Galaxy S20 and the GPUs of Pixel 4 and Mate 40 Pro are
  not in Table 1: the DSP is that of Pixel 4 by the ratio of the printed accelerators, the GPUs are the
  printed ones by the ratio of the peak rates that are published of them (`_GPU_PEAK_GFLOPS`).
* Numbers have 8 bits, since an Edge TPU takes no others. The files count 32, so that bandwidths are four
  times those of memory.
* The Redmi K40 has "the highest overall performance" (6.2), and 16.8 frames of EagleEye a second are the most
  that is printed. With its GPU and one NPU it would be the slowest here, so that a second unit of the APU is
  taken as a DSP, as fast as the first; then it has 16.0.
* One big core: the big cores of Hetero2Pipe's Kirin 990 (Table II there, four A76) by the share of the clock
  rates, and `_EIGHT_BITS` times as fast; faster cores by `_CORE_SPEED`. The paper prints no time on a CPU.
* Rates follow from Table 1 for a bandwidth, a time of launches and of copies that are guessed: 30 GB/s of 32
  bits for the NPU of Pixel 4, others in proportion to their times. Each chunk on an NPU or a DSP begins
  with a call through "multiple layers of interfaces" (3.2.3), for which 1.5 ms are taken.
* Operators. Printed: the transposed convolution with a stride of 4 runs neither on the DSP (3.2.2) nor on the
  NPU (6.3.1), and dilated convolutions may be lacking where others are there (Fig. 1). Guessed: what makes
  EfficientDet and RetinaFace fall back (6.2, 6.3.1) is the resize of their pyramids. GPUs and CPUs run
  everything. Figures 1 and 5 print more, as bars that cannot be read as numbers here.

`gapless requests coordinate eagleeye --platform pixel4 --seconds 20s` (simulated, `lst`): EagleEye on Pixel 4
has 13.5 frames a second where the paper prints 11.8, and 3.0 with CPUs and GPU alone where it prints 5.3
(Fig. 4); its crowded frames 8.0 and, with `tflite-mp`, 4.7, printed 8.71 and 4.11 (Table 2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gapless.formulations.hardware import EngineSettings, Platform, ProcessingUnit, UnitKind
from gapless.formulations.network import Network
from gapless.profiler.analytic.model import AnalyticModel, KnownTotal, UnitModel
from gapless.profiler.platforms.workloads import phone_model

from .fitting import fit_rates

PAPER = (
    "Jeong et al., Band: Coordinated Multi-DNN Inference on Heterogeneous Mobile Processors (MobiSys 2022)"
)
PAPER_NETWORKS = (
    "arcface-mobilenet",
    "arcface-resnet50",
    "efficientdet-lite0",
    "efficientnet-lite1",
    "efficientnet-lite2",
    "efficientnet-lite3",
    "fsrnet",
    "inceptionv3",
    "inceptionv4",
    "mobilenetv1",
    "retinaface",
)
"""The networks of the paper that are described here."""

LACKING = ("ConvTranspose[stride>=4]", "Conv[dilation>=2]", "Resize")
"""What NPUs and DSPs cannot run."""

CPUS = ("cpu0", "cpu1")
_KIRIN_CLOCKS_MHZ = 2 * 2860 + 2 * 2090
_A76_MHZ = 2840
_EIGHT_BITS = 4
"""How many times as many numbers of 8 bits as of 32 a core multiplies, and moves, at once."""

_CORE_SPEED = {"pixel4": 1.0, "galaxy-s20": 1.20, "redmi-k40": 1.30, "mate40pro": 1.30}
"""Big cores against those of Pixel 4: A77 at 2.84, A78 at 3.0, A77 at 3.13 GHz; estimated."""

_GPU_PEAK_GFLOPS = {"Adreno 640": 899, "Adreno 650": 1202, "Mali-G77 MC9": 979, "Mali-G78 MP24": 2332}
"""With 32 bits, as public tables of these chips have them; only ratios are used."""

_GPU_GUESS = UnitModel(
    unit="gpu",
    flops_per_us=200_000,  # where the fit starts
    product_flops_per_us=200_000,
    bytes_per_us=15_000,
    launch_us=40,
    copy_us=500,
    copy_bytes_per_us=8_000,
)
_NPU_US = 25_290
_NPU_GUESS = replace(
    _GPU_GUESS, unit="npu", bytes_per_us=30_000, launch_us=10, copy_us=1_500, unsupported=LACKING
)
_DSP_GUESS = replace(_NPU_GUESS, unit="dsp")
_KINDS = {"cpu": UnitKind.CPU, "gpu": UnitKind.GPU, "dsp": UnitKind.DSP, "npu": UnitKind.NPU}
_BACKENDS = {"gpu": "opencl", "dsp": "hexagon", "npu": "nnapi"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatedPhone:
    """One phone, as its files are written.

    `platform`, `model`: see the types.
    """

    platform: Platform
    model: AnalyticModel


@dataclass(frozen=True, slots=True, kw_only=True)
class _Printed:
    """What is known of a phone."""

    name: str
    chip: str  # what its units are, for its source
    inception_us: tuple[tuple[UnitModel, float, str], ...]  # time of InceptionV4 by unit, and where it stands


def _by_peak(time_us: float, known: str, wanted: str) -> float:
    return time_us * _GPU_PEAK_GFLOPS[known] / _GPU_PEAK_GFLOPS[wanted]


_TABLE = "Table 1"
_PHONES = (
    _Printed(
        name="pixel4",
        chip="Snapdragon 855 (Adreno 640, Hexagon 690) and Google Edge TPU (npu)",
        inception_us=(
            (_GPU_GUESS, _by_peak(115_520, "Adreno 650", "Adreno 640"), "Adreno 650 by peak rates"),
            (_DSP_GUESS, 25_430, _TABLE),
            (_NPU_GUESS, _NPU_US, _TABLE),
        ),
    ),
    _Printed(
        name="galaxy-s20",
        chip="Snapdragon 865 (Adreno 650, Hexagon 698), Qualcomm HTA (npu)",
        inception_us=(
            (_GPU_GUESS, 115_520, _TABLE),
            (_DSP_GUESS, 25_430 * 23_980 / _NPU_US, "the DSP of Pixel 4 by the ratio of the NPUs"),
            (_NPU_GUESS, 23_980, _TABLE),
        ),
    ),
    _Printed(
        name="redmi-k40",
        chip="Redmi K40 Gaming: Dimensity 1200 (Mali-G77, MediaTek APU 3.0 as npu)",
        inception_us=(
            (_GPU_GUESS, 133_360, _TABLE),
            (_DSP_GUESS, 20_340, "as the NPU"),
            (_NPU_GUESS, 20_340, _TABLE),
        ),
    ),
    _Printed(
        name="mate40pro",
        chip="Kirin 9000 (Mali-G78, Huawei NPU)",
        inception_us=(
            (_GPU_GUESS, _by_peak(133_360, "Mali-G77 MC9", "Mali-G78 MP24"), "Mali-G77 by peak rates"),
            (_NPU_GUESS, 10_150, _TABLE),
        ),
    ),
)

_NOTES = (
    "All other times are computed: rates fitted to the printed times of InceptionV4, bandwidths and the "
    "times of launches and copies guessed; one big core is its share, by the clocks, of the big cores of the "
    "Kirin 990, and no time on a CPU is printed. Sizes of inputs, and which operators NPU and DSP lack "
    "besides the transposed convolution, are assumed. See benchmarks/phone_platforms/band.py."
)


def coordinated_phones(networks: Sequence[Network]) -> tuple[CoordinatedPhone, ...]:
    """Return the four phones, their models fitted to InceptionV4, which is among the networks."""
    return tuple(_phone(printed, networks) for printed in _PHONES)


def _phone(printed: _Printed, networks: Sequence[Network]) -> CoordinatedPhone:
    accelerators = [_fitted(*known, networks) for known in printed.inception_us]
    core = _core(_CORE_SPEED[printed.name])
    units = (*(replace(core, unit=name) for name in CPUS), *accelerators)
    return CoordinatedPhone(
        platform=Platform(
            name=printed.name,
            units=tuple(map(_unit, units)),
            source=f"{PAPER}, 6.1: {printed.chip}; two workers of one thread each on big cores. Which units "
            "there are besides is estimated where 6.1 and Table 1 do not name them.",
        ),
        model=AnalyticModel(units=units, source=PAPER, notes=_NOTES),
    )


def _unit(model: UnitModel) -> ProcessingUnit:
    name, kind = model.unit, _KINDS[model.unit[:3]]
    if kind is UnitKind.CPU:
        return ProcessingUnit(name=name, kind=kind, threads=1)
    engine = EngineSettings(backend=_BACKENDS[name])
    return ProcessingUnit(name=name, kind=kind, engine=engine, unsupported=model.unsupported)


def _fitted(guess: UnitModel, time_us: float, source: str, networks: Sequence[Network]) -> UnitModel:
    total = KnownTotal(network="inceptionv4", total_us=round(time_us), printed=True, source=source)
    if guess.unsupported:
        guess = replace(guess, bytes_per_us=round(guess.bytes_per_us * _NPU_US / time_us))
    fitted = fit_rates(replace(guess, totals=(total,)), networks)
    return replace(fitted, totals=(replace(total, printed=source == _TABLE),))


def _core(speed: float) -> UnitModel:
    """Return one big core, `speed` times as fast as one of Pixel 4."""
    cluster = next(unit for unit in phone_model("kirin990").units if unit.unit == "cpu_big")
    share = speed * _EIGHT_BITS * _A76_MHZ / _KIRIN_CLOCKS_MHZ
    return replace(
        cluster,
        flops_per_us=round(cluster.flops_per_us * share),
        product_flops_per_us=round(cluster.product_flops_per_us * share),
        bytes_per_us=round(cluster.bytes_per_us * _EIGHT_BITS * speed * 2 / 3),  # one core reaches most of it
        launch_us=20,
        totals=(),
    )
