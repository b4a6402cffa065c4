"""OpenVINO's devices, by our names of backends. Does not import it."""

from __future__ import annotations

DEVICES = {"cpu": "CPU", "gpu": "GPU", "gpu.1": "GPU.1", "npu": "NPU"}
"""What to ask for: one device each, never AUTO, MULTI or HETERO, which choose by themselves."""


def backend_name(devices: list[str], asked: str) -> str:
    """Return our name of the devices on which a compiled model says that it is executed.

    The first of several devices of a kind answers to its kind alone, but tells its number.
    """
    granted = "+".join(device.lower() for device in devices)
    return asked if granted == f"{asked}.0" else granted
