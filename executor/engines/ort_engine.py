"""The engine "onnxruntime": pieces are run as they are. The second opinion beside MNN."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...formulations.hardware import ProcessingUnit
from ..engine import Artifact, installed_version
from .onnx_pieces import OnnxEngine

if TYPE_CHECKING:
    from .ort_session import OrtSession


PROVIDERS = {
    "cpu": "CPUExecutionProvider",
    "cuda": "CUDAExecutionProvider",
    "tensorrt": "TensorrtExecutionProvider",
    "openvino": "OpenVINOExecutionProvider",
    "qnn": "QNNExecutionProvider",
    "nnapi": "NnapiExecutionProvider",
    "coreml": "CoreMLExecutionProvider",
    "xnnpack": "XnnpackExecutionProvider",
}
"""Our names of backends, and the execution providers to ask for; the package decides which are there."""


def backend_name(provider: str) -> str:
    """Return our name of a provider that a session reports."""
    return next((name for name, known in PROVIDERS.items() if known == provider), provider)


class OrtEngine(OnnxEngine):
    """ONNX Runtime."""

    name = "onnxruntime"
    _title, _module, _extra = "ONNX Runtime", "onnxruntime", "ort"
    _probed = tuple(PROVIDERS)

    def open(self, artifact: Artifact, unit: ProcessingUnit) -> OrtSession:
        """Open a session in this process.

        Raises PlacementError: another backend, another number of threads or other cores were granted than was
        asked; ExecutionError: the artifact cannot be opened.
        """
        version = installed_version(self.availability())
        from .ort_session import OrtSession

        return OrtSession(artifact, unit, version=version, allow_mismatch=self._allow_mismatch)
