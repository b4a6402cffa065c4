"""The checker of the onnx package, without its exceptions."""

from __future__ import annotations

import onnx
from onnx import ModelProto


def checker_complaint(model: ModelProto) -> str | None:
    """Return what the ONNX checker has against a model, or None.

    Outputs without a shape are accepted, as every runtime does: shapes are inferred anyway.
    """
    bare = [
        value.type.tensor_type
        for value in model.graph.output
        if value.type.HasField("tensor_type") and not value.type.tensor_type.HasField("shape")
    ]
    for tensor in bare:
        tensor.shape.SetInParent()
    try:
        onnx.checker.check_model(model)
    except MemoryError:
        raise
    except Exception as error:  # the checker raises its own classes, which are not public in all versions
        return f"the ONNX checker says: {' '.join(str(error).split())[:600]}"
    finally:
        for tensor in bare:
            tensor.ClearField("shape")
    return None
