"""MNN's backends: our names, the words that MNN takes, the numbers that it reports. Does not import MNN."""

from __future__ import annotations

WORDS = {
    "cpu": "CPU",
    "metal": "METAL",
    "cuda": "CUDA",
    "opencl": "OPENCL",
    "nnapi": "NN",
    "opengl": "OPENGL",
    "vulkan": "VULKAN",
    "hiai": "HIAI",
    "tensorrt": "TRT",
}
"""What to ask for. MNN takes every one of them, and falls back to the CPU where it is not there."""

_NAMES = {
    0: "cpu",
    1: "metal",
    2: "cuda",
    3: "opencl",
    5: "nnapi",
    6: "opengl",
    7: "vulkan",
    8: "hiai",
    9: "tensorrt",
    13: "cpu",  # with instructions beyond the baseline
}


def backend_name(number: int) -> str:
    """Return our name of the backend that a session reports."""
    return _NAMES.get(number, f"backend number {number}")
