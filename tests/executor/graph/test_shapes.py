from __future__ import annotations

from typing import Any

import pytest
from onnx import ModelProto, helper

from gapless.executor.graph.shapes import fix_shapes, parse_shapes
from gapless.formulations.errors import InvalidInputError, InvalidModelError

from .models import Dims, model, node, value


def adding(**inputs: Dims | None) -> ModelProto:
    return model(
        [node("Sum", " ".join(inputs), "y")],
        [value(name, dims) for name, dims in inputs.items()],
        [value("y", None)],
    )


def refused(proto: ModelProto, given: dict[str, Any]) -> str:
    with pytest.raises(InvalidModelError) as caught:
        fix_shapes(proto, given)
    return str(caught.value)


def test_texts_become_shapes() -> None:
    texts = ["x=1,3,480,640", "odd=name=2, 3", "7"]
    assert parse_shapes(texts) == {"x": (1, 3, 480, 640), "odd=name": (2, 3), "": (7,)}


def test_all_malformed_texts_are_listed() -> None:
    bad = ["x=", "y=1,,2", "z=1,-2", "q=0", "r=1e3", "s=2.5", "t=1,²", "u=999999999999999999999"]
    with pytest.raises(InvalidInputError) as caught:
        parse_shapes([*bad, "v=1", "v=2"])
    assert len(caught.value.problems) == len(bad) + 1
    assert "'v' is given twice" in str(caught.value)


def test_open_dimensions_are_fixed_in_place() -> None:
    proto = adding(x=["batch", 3, None], y2=[2, 2])
    assert fix_shapes(proto, {"x": (1, 3, 5)}) == (("x", (1, 3, 5)),)
    assert [size.dim_value for size in proto.graph.input[0].type.tensor_type.shape.dim] == [1, 3, 5]


def test_one_input_needs_no_name() -> None:
    assert fix_shapes(adding(x=[None, 3]), {"": (4, 3)}) == (("x", (4, 3)),)
    text = refused(adding(a=[None], b=[None]), {"": (4,)})
    assert "a, b" in text
    assert "--shape NAME=4" in text


def test_a_request_shows_the_option_to_type() -> None:
    text = refused(adding(x=["batch", 3, None, 640], y2=[None], z=None), {})
    assert "--shape x=batch,3,SIZE2,640" in text
    assert "--shape y2=SIZE0" in text
    assert "--shape z=..." in text


def test_the_option_can_be_pasted_into_a_shell() -> None:
    assert "--shape 'x=n $(reboot),3'" in refused(adding(x=["n $(reboot)", 3]), {})
    assert "\x1b" not in refused(adding(x=["\x1b[31m"]), {})


def test_contradictions_are_listed_together() -> None:
    proto = adding(x=[1, 3, None], y2=[None, 2], z=[0, 1])
    text = refused(proto, {"x": (2, 4, 5), "y2": (1, 2, 3), "nowhere": (1,), "unknown": (1,)})
    for words in (
        "dimension 0 is 1, not 2; dimension 1 is 3, not 4",
        "input 'y2' has 2 dimensions",
        "nowhere=...: the model has no such input; it has x, y2, z",
        "unknown=...",
        "'z' has the shape 0 x 1, which is empty",
    ):
        assert words in text


def test_sizes_given_from_python_are_checked_too() -> None:
    assert "positive whole numbers" in refused(adding(x=[None, 1]), {"x": (0, 1)})
    assert "positive whole numbers" in refused(adding(x=[None, 1]), {"x": (2.5, 1)})


def test_only_tensors_can_be_inputs() -> None:
    proto = adding(x=[1])
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, [1]))
    proto.graph.input.append(helper.make_value_info("s", kind))
    assert "input 's' is not a tensor but a sequence_type" in refused(proto, {})
