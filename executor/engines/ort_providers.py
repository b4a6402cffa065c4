"""ONNX Runtime's execution providers, by our names of backends. Does not import it."""

from __future__ import annotations

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
"""What to ask for. Which of them are there depends on the package that is installed."""


def backend_name(provider: str) -> str:
    """Return our name of a provider that a session reports."""
    return next((name for name, known in PROVIDERS.items() if known == provider), provider)
