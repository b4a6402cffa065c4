"""Networks of two branches that do not see each other before the end."""

from __future__ import annotations

import spox.opset.ai.onnx.v17 as op
from spox import Var

from .blocks import Blocks, Outputs, tensor_shape
from .mobilenet import mobilenet_v2_features
from .transformers import MINI, dense, embedded, encoded, first_token, layer_norm, reshaped
from .weights import LINEAR, RECTIFIED, lookup_table

SHARED = 256
"""Numbers in which images and texts are compared."""

RECURRENT = 4
"""LSTM operators in a row, each of which reads the words in both directions."""


def two_tower(net: Blocks, image: Var, input_ids: Var, token_type_ids: Var) -> Outputs:
    """Build MobileNetV2 for an image beside BERT-mini for a text, and how near they are.

    The form is that of Radford et al. 2021, CLIP (arXiv 2103.00020), figure 3: a linear projection of what
    each encoder makes, scaled to length 1; their product is the cosine of the angle between them.
    """
    pixels = net.global_average_pool(mobilenet_v2_features(net, image), "image.pool")
    seen = net.linear(net.flatten(pixels, "image.flatten"), "image.project", SHARED, after=RECTIFIED)
    words = encoded(net, MINI, embedded(net, MINI, input_ids, token_type_ids), block="text.block")
    read = net.linear(first_token(net, words), "text.project", SHARED, after=LINEAR)
    seen, read = _of_length_1(net, seen, "image"), _of_length_1(net, read, "text")
    return {
        "image_embedding": seen,
        "text_embedding": read,
        "similarity": net.named("similarity", op.gemm(seen, read, transB=1)),
    }


def lstm_attention(net: Blocks, input_ids: Var, token_type_ids: Var) -> Outputs:
    """Build an encoder of two columns: BERT-mini's blocks, and bidirectional LSTM, over the same words.

    Chen et al. 2018, The Best of Both Worlds (arXiv 1804.09849), join the columns of two such encoders, too;
    here they are of the size of BERT-mini.
    """
    x = embedded(net, MINI, input_ids, token_type_ids)
    attention = encoded(net, MINI, x, block="attention.block")
    length = tensor_shape(x)[1]
    steps = reshaped(net, x, "lstm.steps", (length, 1, MINI.width))
    for index in range(1, RECURRENT + 1):
        steps = _both_directions(net, steps, f"lstm{index}")
    recurrent = reshaped(net, steps, "lstm.tokens", (1, length, MINI.width))
    both = net.named("columns", op.concat([attention, recurrent], axis=2))
    return {"encoded": layer_norm(net, dense(net, both, "join", MINI.width), "encoded")}


def _of_length_1(net: Blocks, x: Var, name: str) -> Var:
    length = net.named(f"{name}.length", op.reduce_l2(x, axes=[1], keepdims=1))
    return net.named(f"{name}_embedding", op.div(x, length))


def _both_directions(net: Blocks, x: Var, name: str) -> Var:
    """Add an LSTM, (steps, 1, width) to the same shape: half of the numbers of each direction."""
    length, _, width = tensor_shape(x)
    half = width // 2
    shapes = {"input": (2, 4 * half, width), "state": (2, 4 * half, half), "bias": (2, 8 * half)}
    weights = [
        net.weight(f"{name}.{part}", lookup_table(shape, variance=1.0 / width))
        for part, shape in shapes.items()
    ]
    y, _, _ = op.lstm(x, *weights, hidden_size=half, direction="bidirectional")
    y = net.named(f"{name}.order", op.transpose(net.named(name, y), perm=(0, 2, 1, 3)))
    return reshaped(net, y, f"{name}.joined", (length, 1, width))
