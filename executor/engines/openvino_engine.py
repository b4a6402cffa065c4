"""The engine "openvino": pieces are compiled by OpenVINO when they are opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...formulations.hardware import ProcessingUnit
from ..engine import Artifact, installed_version
from .onnx_pieces import OnnxEngine

if TYPE_CHECKING:
    from .openvino_session import OpenVinoSession


DEVICES = {"cpu": "CPU", "gpu": "GPU", "gpu.1": "GPU.1", "npu": "NPU"}
"""Our names of backends, and the devices to ask for: never AUTO, MULTI or HETERO, which choose themselves."""


def backend_name(devices: list[str], asked: str) -> str:
    """Return our name of the devices on which a compiled model says that it is executed.

    The first of several devices of a kind answers to its kind alone, but tells its number.
    """
    granted = "+".join(device.lower() for device in devices)
    return asked if granted == f"{asked}.0" else granted


class OpenVinoEngine(OnnxEngine):
    """OpenVINO."""

    name = "openvino"
    _title, _module, _extra = "OpenVINO", "openvino", "openvino"
    _probed = tuple(DEVICES)

    def open(self, artifact: Artifact, unit: ProcessingUnit) -> OpenVinoSession:
        """Compile a piece for a unit, in this process.

        Raises PlacementError: another device, another number of threads or other cores were granted than was
        asked; ExecutionError: OpenVINO cannot run the piece.
        """
        version = installed_version(self.availability())
        from .openvino_session import OpenVinoSession

        return OpenVinoSession(artifact, unit, version=version, allow_mismatch=self._allow_mismatch)
