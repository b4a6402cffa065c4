"""What a plan can be exported to. Imports nothing, for the command line."""

from __future__ import annotations

from enum import StrEnum


class ExportKind(StrEnum):
    """What a plan is exported to.

    ONNX
        Sliced ONNX models, for any runtime.
    ONNXRUNTIME
        The same, with the session options of ONNX Runtime; units that it cannot drive are refused.
    MNN
        The slices in MNN's form, with the settings of its sessions.
    TASKSET
        As for the engine that is asked for, and a shell script with a process for each chunk.
    """

    ONNX = "onnx"
    ONNXRUNTIME = "onnxruntime"
    MNN = "mnn"
    TASKSET = "taskset"
