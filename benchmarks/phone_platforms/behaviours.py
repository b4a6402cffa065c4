"""How the units of Band's four phones behave at work, and where each number comes from.

* In company: Table 1, the time of one of 1, 2 and 4 inferences at once; for 3 halfway between 2 and 4
  (interpolated). The DSP of the Galaxy S20 as that of Pixel 4, the GPU of Pixel 4 as the Adreno 650 and that
  of Mate 40 Pro as the Mali-G77 (estimated). Cores work in turns.
* Cold: up to 2.61 times as slow on CPU and GPU (Fig. 7, ArcFace-ResNet50 on Pixel 4), the largest factor
  in the text, taken for both. After which idle time is estimated: half a second.
* Tails: up to 1.53 times the median on DSP and NPU (Fig. 7); how often is estimated: one chunk in twenty.
* Powers: estimated, so that the simulation of the crowded EagleEye on Pixel 4 draws the 7.99 W (`lst`) and
  the 7.60 W (`tflite-mp`) of Table 2. That they differ by so little at half the frames leaves most of the
  power to the rest of the device.
* Heat: the NPU of Pixel 4 is lost after "more than 10 minutes" of EagleEye for "about 7 seconds" (Fig. 19).
  The model is estimated to that, for an NPU that is busy 95 % of the time, as in the simulation of the
  crowded EagleEye: its end temperature would be 75 degrees.
"""

from __future__ import annotations

from gapless.formulations.coordination.behaviour import Behaviour, HeatModel, UnitBehaviour

COLD_PERMILLE, TAIL_PERMILLE = 2610, 1530
"""Fig. 7."""

TABLE_1_MS = {
    "Edge TPU": (25.29, 35.86, 56.94),
    "Hexagon": (25.43, 37.34, 61.32),
    "HTA": (23.98, 24.08, 33.66),
    "Adreno 650": (115.52, 228.33, 448.34),
    "APU 3.0": (20.34, 21.35, 31.61),
    "Mali-G77": (133.36, 255.49, 477.91),
    "Huawei NPU": (10.15, 14.92, 23.53),
}
"""Mean time of InceptionV4, milliseconds, with 1, 2 and 4 at once."""

_UNITS = {
    "pixel4": {"gpu": "Adreno 650", "dsp": "Hexagon", "npu": "Edge TPU"},
    "galaxy-s20": {"gpu": "Adreno 650", "dsp": "Hexagon", "npu": "HTA"},
    "redmi-k40": {"gpu": "Mali-G77", "dsp": "APU 3.0", "npu": "APU 3.0"},
    "mate40pro": {"gpu": "Mali-G77", "npu": "Huawei NPU"},
}
_BUSY_MW = {"cpu0": 600, "cpu1": 600, "gpu": 550, "dsp": 500, "npu": 650}
_IDLE_MW = 300
_BASE_MW = 5600
_NPU_HEAT = HeatModel(kelvin_per_w=80.0, time_s=400.0, limit_c=65.5, back_c=65.2)
_COLD_AFTER_US = 500_000
_TAIL_SHARE_PERMILLE = 50
_SOURCE = (
    "Band: in company Table 1 (three at once interpolated), slow when cold and tails Fig. 7. Estimated: how "
    "long until cold, how often tails, all powers (by Table 2), the model of heat (near Fig. 19), and "
    "units that Table 1 does not have. See benchmarks/phone_platforms/behaviours.py."
)


def behaviour_of(phone: str) -> Behaviour:
    """Return how the units of a phone behave; phones are those of `phones.coordinated_phones`."""
    cores = (_core(name) for name in ("cpu0", "cpu1"))
    others = (_accelerator(phone, unit, name) for unit, name in _UNITS[phone].items())
    return Behaviour(platform=phone, units=(*cores, *others), base_mw=_BASE_MW, source=_SOURCE)


def _core(name: str) -> UnitBehaviour:
    return UnitBehaviour(
        unit=name,
        busy_mw=_BUSY_MW[name],
        idle_mw=_IDLE_MW,
        cold_permille=COLD_PERMILLE,
        cold_after_us=_COLD_AFTER_US,
    )


def _accelerator(phone: str, unit: str, name: str) -> UnitBehaviour:
    if unit == "gpu":
        return UnitBehaviour(
            unit=unit,
            sharing_permille=_sharing(name),
            busy_mw=_BUSY_MW[unit],
            idle_mw=_IDLE_MW,
            cold_permille=COLD_PERMILLE,
            cold_after_us=_COLD_AFTER_US,
        )
    return UnitBehaviour(
        unit=unit,
        sharing_permille=_sharing(name),
        busy_mw=_BUSY_MW[unit],
        idle_mw=_IDLE_MW,
        tail_permille=TAIL_PERMILLE,
        tail_share_permille=_TAIL_SHARE_PERMILLE,
        heat=_NPU_HEAT if (phone, unit) == ("pixel4", "npu") else None,
    )


def _sharing(name: str) -> tuple[int, ...]:
    one, two, four = TABLE_1_MS[name]
    return tuple(round(1000 * time / one) for time in (one, two, (two + four) / 2, four))
