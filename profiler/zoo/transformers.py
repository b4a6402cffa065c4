"""BERT and ViT in several sizes: the same encoder blocks, over words and over patches of an image.

The operators are those of a PyTorch export: LayerNormalization as one, GELU by its definition with Erf.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
import spox.opset.ai.onnx.v17 as op
from spox import Var

from .blocks import CLASSES, RESIDUAL_SCALE, Blocks, Outputs, tensor_shape
from .weights import GELU, IMAGE, LINEAR, After, around, lookup_table, matrix


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How large an encoder is."""

    width: int  # numbers of each token between the blocks
    hidden: int  # numbers of each token inside of a block's feed-forward part
    heads: int  # heads of its attention
    depth: int  # blocks


BASE = Size(width=768, hidden=3072, heads=12, depth=12)
LARGE = Size(width=1024, hidden=4096, heads=16, depth=24)
HUGE = Size(width=1280, hidden=5120, heads=16, depth=32)
"""Devlin et al. 2018 (arXiv 1810.04805), section 3, and Dosovitskiy et al. 2020 (arXiv 2010.11929), table 1.
"""

TINY = Size(width=192, hidden=768, heads=3, depth=12)
SMALL = Size(width=384, hidden=1536, heads=6, depth=12)
SHORT = Size(width=512, hidden=2048, heads=8, depth=4)
MINI = Size(width=256, hidden=1024, heads=4, depth=4)
"""DeiT: Touvron et al. 2020 (arXiv 2012.12877), table 1; BERT-small and -mini: Turc et al. 2019 (arXiv
1908.08962)."""

VOCABULARY, POSITIONS, SEGMENTS = 30_522, 512, 2
"""Rows of BERT's three tables (uncased)."""


def embedded(net: Blocks, size: Size, input_ids: Var, token_type_ids: Var) -> Var:
    """Add BERT's three tables and the sum of what they say of each word: (1, words, width)."""
    length = tensor_shape(input_ids)[1]
    tables = {"word": VOCABULARY, "segment": SEGMENTS, "position": POSITIONS}
    word, segment, position = (
        net.weight(f"embed.{name}.weight", lookup_table((rows, size.width), variance=1.0 / 3.0))
        for name, rows in tables.items()
    )
    words = net.named("embed.word", op.gather(word, input_ids))
    segments = net.named("embed.segment", op.gather(segment, token_type_ids))
    bounds = (net.fixed(f"embed.position.{n}", np.array([v])) for n, v in (("start", 0), ("stop", length)))
    x = net.add(words, segments, "embed.add1")
    x = net.add(x, net.named("embed.position", op.slice(position, *bounds)), "embed.add2")
    return layer_norm(net, x, "embed.norm", epsilon=1e-12)


def encoded(net: Blocks, size: Size, x: Var, *, block: str = "block") -> Var:
    """Add BERT's encoder blocks, named `block` and a number."""
    for index in range(1, size.depth + 1):
        name = f"{block}{index}"
        x = net.add(x, _attention(net, size, x, f"{name}.attention"), f"{name}.add1")
        x = layer_norm(net, x, f"{name}.norm1", epsilon=1e-12)
        x = net.add(x, _feed_forward(net, size, x, name), f"{name}.add2")
        x = layer_norm(net, x, f"{name}.norm2", epsilon=1e-12)
    return x


def bert(net: Blocks, input_ids: Var, token_type_ids: Var, *, size: Size) -> Outputs:
    """Build BERT with its pooler; sequences fill their length, so that there is no mask."""
    x = encoded(net, size, embedded(net, size, input_ids, token_type_ids))
    pooled = net.linear(first_token(net, x), "pooler", size.width, after=LINEAR)
    return {"last_hidden_state": x, "pooler_output": net.named("pooler.tanh", op.tanh(pooled))}


def vit(net: Blocks, image: Var, *, size: Size, patch: int = 16) -> Outputs:
    """Build ViT, or DeiT without distillation, on square patches of an image."""
    x = net.conv(image, "patches", size.width, patch, stride=patch, pad=0, bias=True, after=IMAGE)
    x = reshaped(net, x, "patches.flat", (1, size.width, -1))
    x = net.named("patches.tokens", op.transpose(x, perm=(0, 2, 1)))
    x = net.concat([net.weight("class_token", lookup_table((1, 1, size.width), variance=1.0)), x], "tokens")
    positions = net.weight("positions", lookup_table((1, tensor_shape(x)[1], size.width), variance=0.1))
    x = net.add(x, positions, "tokens.add")
    for index in range(1, size.depth + 1):
        name = f"block{index}"
        y = _attention(net, size, layer_norm(net, x, f"{name}.norm1"), f"{name}.attention")
        x = net.add(x, y, f"{name}.add1")
        y = _feed_forward(net, size, layer_norm(net, x, f"{name}.norm2"), name)
        x = net.add(x, y, f"{name}.add2")
    x = first_token(net, layer_norm(net, x, "norm"))
    return {"logits": net.linear(x, "classifier", CLASSES, after=LINEAR)}


def _attention(net: Blocks, size: Size, x: Var, name: str) -> Var:
    """Add self-attention: the heads share the channels."""
    split = (1, -1, size.heads, size.width // size.heads)
    queries, keys, values = (
        net.named(
            f"{name}.{part}.heads",
            op.transpose(
                reshaped(net, dense(net, x, f"{name}.{part}", size.width), f"{name}.{part}.split", split),
                perm=order,
            ),
        )
        for part, order in (("query", (0, 2, 1, 3)), ("key", (0, 2, 3, 1)), ("value", (0, 2, 1, 3)))
    )
    scale = net.fixed("attention.scale", np.float32(1.0 / sqrt(size.width // size.heads)))
    scores = net.named(f"{name}.scores", op.matmul(queries, keys))
    shares = op.softmax(net.named(f"{name}.scaled", op.mul(scores, scale)), axis=-1)
    mixed = net.named(f"{name}.mixed", op.matmul(net.named(f"{name}.softmax", shares), values))
    mixed = net.named(f"{name}.tokens", op.transpose(mixed, perm=(0, 2, 1, 3)))
    mixed = reshaped(net, mixed, f"{name}.joined", (1, -1, size.width))
    return dense(net, mixed, f"{name}.output", size.width)


def _feed_forward(net: Blocks, size: Size, x: Var, name: str) -> Var:
    """Add two fully connected operators with a GELU between them."""
    x = _gelu(net, dense(net, x, f"{name}.expand", size.hidden), f"{name}.gelu")
    return dense(net, x, f"{name}.project", size.width, after=GELU.times(RESIDUAL_SCALE))


def _gelu(net: Blocks, x: Var, name: str) -> Var:
    """Add x (1 + erf(x / sqrt 2)) / 2."""
    root, one, half = (
        net.fixed(f"gelu.{n}", np.float32(v)) for n, v in (("root", sqrt(2.0)), ("one", 1.0), ("half", 0.5))
    )
    erf = net.named(f"{name}.erf", op.erf(net.named(f"{name}.div", op.div(x, root))))
    product = net.named(f"{name}.mul", op.mul(x, net.named(f"{name}.add", op.add(erf, one))))
    return net.named(name, op.mul(product, half))


def dense(net: Blocks, x: Var, name: str, features: int, *, after: After = LINEAR) -> Var:
    """Add a fully connected operator on every token: a product, and the sum with a bias."""
    weight = net.weight(f"{name}.weight", matrix(tensor_shape(x)[-1], features, after))
    product = net.named(f"{name}.matmul", op.matmul(x, weight))
    return net.add(product, net.weight(f"{name}.bias", around(0.0, features)), name)


def layer_norm(net: Blocks, x: Var, name: str, *, epsilon: float = 1e-6) -> Var:
    """Add a layer normalisation of every token."""
    width = tensor_shape(x)[-1]
    weight = net.weight(f"{name}.weight", around(1.0, width))
    bias = net.weight(f"{name}.bias", around(0.0, width))
    return net.named(name, op.layer_normalization(x, weight, bias, epsilon=epsilon)[0])


def reshaped(net: Blocks, x: Var, name: str, shape: tuple[int, ...]) -> Var:
    """Add a reshape; -1 is what is left."""
    sizes = net.fixed(f"shape{shape}", np.array(shape, np.int64))
    return net.named(name, op.reshape(x, sizes))


def first_token(net: Blocks, x: Var) -> Var:
    """Take the token that stands for the whole: (1, tokens, width) to (1, width)."""
    return net.named("first_token", op.gather(x, net.fixed("first", np.array(0)), axis=1))
