"""The transformer of EPipe (3.1.1), trained with PyTorch and written as ONNX.

    encoder:   h = Encoder(W x)                     x: features of the layers of a shard, one token each
    decoder:   q_i = h_i + U e                      e: embedding of the device
               z_i = Decoder(q_i; keys and values h)
    head:      time_i = regression_i * exp(MLP(z_i))

The paper's decoder takes the embedding alone, and "the computation latency of each layer" is to come out of
it: one query cannot tell layers apart, so each layer asks with the embedding added to it. Times of shards are
sums of those of their layers, because that is what a planner adds up; the network is trained on both. What
the regression of the device says already is not learned again: a device of twice the speed takes half the
time.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from ...executor.progress import Report, Step, silent
from .examples import Dataset, Example, examples

if TYPE_CHECKING:
    from numpy.typing import NDArray

WIDTH, HEADS, DEPTH = 48, 4, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """How the transformer is trained."""

    epochs: int = 30
    batch: int = 64
    rate: float = 2e-3
    dropout: float = 0.1
    layer_share: float = 0.5
    seed: int = 0


class Attention(nn.Module):
    """Attention with several heads; PyTorch's own cannot be exported for any number of tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x: Tensor, y: Tensor, there: Tensor | None) -> Tensor:
        """Let tokens `x` look at those of `y` that are there."""
        q, k, v = (
            part(tokens).unflatten(-1, (HEADS, -1)).transpose(-3, -2)
            for part, tokens in ((self.query, x), (self.key, y), (self.value, y))
        )
        scores = q @ k.transpose(-2, -1) / math.sqrt(WIDTH // HEADS)
        if there is not None:
            scores = scores.masked_fill(~there[:, None, None, :], -1e9)
        found: Tensor = self.out((scores.softmax(-1) @ v).transpose(-3, -2).flatten(-2))
        return found


class Block(nn.Module):
    """Attention and a feed-forward part, each with a shortcut and normalised before."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.attention = Attention()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(3))
        self.feed = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor, y: Tensor | None, there: Tensor | None) -> Tensor:
        """Have `x` attend to `y`, or to itself."""
        asked = self.norms[0](x)
        x = x + self.drop(self.attention(asked, asked if y is None else self.norms[1](y), there))
        found: Tensor = x + self.drop(self.feed(self.norms[2](x)))
        return found


class CostTransformer(nn.Module):
    """Logarithms of the time of each layer relative to the regression, by [device][layer]."""

    def __init__(
        self, mean: NDArray[Any], scale: NDArray[Any], device_scale: NDArray[Any], dropout: float
    ) -> None:
        super().__init__()
        self.mean, self.scale, self.device_scale = (
            nn.Buffer(torch.from_numpy(values.astype(np.float32))) for values in (mean, scale, device_scale)
        )
        self.layer = nn.Linear(len(mean), WIDTH)
        self.device = nn.Linear(len(device_scale), WIDTH)
        self.encoder = nn.ModuleList(Block(dropout) for _ in range(DEPTH))
        self.decoder = Block(dropout)
        self.head = nn.Sequential(
            nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, 1)
        )
        for values in self.head[-1].parameters():
            nn.init.zeros_(values)  # it starts from what the regression says

    def forward(self, layers: Tensor, devices: Tensor, there: Tensor | None = None) -> Tensor:
        """Encode layers once, [1 or devices][layer][feature], and decode them for each device."""
        tokens = self.layer((layers - self.mean) / self.scale)
        for block in self.encoder:
            tokens = block(tokens, None, there)
        queries = tokens + self.device(devices / self.device_scale)[:, None, :]
        memory = tokens.expand(queries.shape[0], -1, -1)
        found: Tensor = self.head(self.decoder(queries, memory, there))[..., 0]
        return found.clamp(-3.0, 3.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    layers: Tensor
    devices: Tensor
    there: Tensor
    linear_us: Tensor
    run_us: Tensor
    layer_us: Tensor


def train_transformer(
    data: Dataset, *, extended: bool = True, training: Training = Training(), report: Report = silent
) -> CostTransformer:
    """Train the transformer on a data set.

    `extended`: whether it sees more than Table 1.
    """
    torch.manual_seed(training.seed)
    torch.set_num_threads(1)  # the matrices are small: further threads would only wait for each other
    random = np.random.default_rng(training.seed)
    inputs = {name: one.inputs(extended=extended) for name, one in data.networks.items()}
    every = np.concatenate(list(inputs.values()))
    vectors = np.stack([kind.embedding.vector() for kind in data.types])
    model = CostTransformer(
        every.mean(axis=0), every.std(axis=0) + 0.05, vectors.std(axis=0) + 0.5, training.dropout
    )
    found = sorted(examples(data), key=lambda one: one.stop - one.start)
    batches = [
        _batch(found[start : start + training.batch], data, inputs)
        for start in range(0, len(found), training.batch)
    ]
    optimiser = torch.optim.AdamW(model.parameters(), lr=training.rate, weight_decay=0.02)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, max_lr=training.rate, total_steps=training.epochs * len(batches)
    )
    for epoch in range(training.epochs):
        report(Step(text="training the transformer", done=epoch, total=training.epochs))
        model.train()
        for place in random.permutation(len(batches)):
            loss = _loss(model, batches[place], training.layer_share)
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            schedule.step()
    return model.eval()


def _batch(found: Sequence[Example], data: Dataset, inputs: dict[str, NDArray[Any]]) -> _Batch:
    longest = max(one.stop - one.start for one in found)
    layers = np.zeros((len(found), longest, next(iter(inputs.values())).shape[1]), np.float32)
    there = np.zeros((len(found), longest), bool)
    linear_us = np.zeros((len(found), longest), np.float32)
    layer_us = np.full((len(found), longest), np.nan, np.float32)
    for row, one in enumerate(found):
        span, count = slice(one.start, one.stop), one.stop - one.start
        layers[row, :count] = inputs[one.network][span]
        there[row, :count] = True
        linear_us[row, :count] = one.kind.embedding.linear_us(data.networks[one.network])[span]
        if one.layer_us is not None:
            layer_us[row, :count] = one.layer_us
    return _Batch(
        layers=torch.from_numpy(layers),
        devices=torch.from_numpy(np.stack([one.kind.embedding.vector() for one in found])),
        there=torch.from_numpy(there),
        linear_us=torch.from_numpy(linear_us),
        run_us=torch.tensor([one.run_us for one in found]),
        layer_us=torch.from_numpy(layer_us),
    )


def _loss(model: CostTransformer, batch: _Batch, layer_share: float) -> Tensor:
    """Return the mean absolute logarithm of predicted over measured: of shards, and of their layers."""
    times_us = batch.linear_us * model(batch.layers, batch.devices, batch.there).exp()
    loss = (times_us.sum(1) / batch.run_us).log().abs().mean()
    known = torch.isfinite(batch.layer_us)
    if known.any():
        weights = batch.layer_us[known].sqrt()  # what takes longer counts more, as it does in plans
        errors = (times_us[known] / batch.layer_us[known]).log().abs()
        loss = loss + layer_share * (weights * errors).sum() / weights.sum()
    return loss


def write_transformer(model: CostTransformer, path: Path) -> None:
    """Write it as ONNX: from "layers" [layer][feature] and "devices" [device][number] to "log_ratio"."""
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # it warns of packages that nobody asked for
    layer, device = torch.export.Dim("layer"), torch.export.Dim("device")
    width, numbers = len(model.mean), len(model.device_scale)
    torch.onnx.export(
        _ForOneNetwork(model).eval(),
        (torch.zeros(5, width), torch.zeros(3, numbers)),
        str(path),
        input_names=["layers", "devices"],
        output_names=["log_ratio"],
        dynamic_shapes={"layers": {0: layer}, "devices": {0: device}},
        dynamo=True,
        external_data=False,
        verbose=False,
    )


class _ForOneNetwork(nn.Module):
    """The transformer for the layers of one network."""

    def __init__(self, model: CostTransformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, layers: Tensor, devices: Tensor) -> Tensor:
        found: Tensor = self.model(layers[None], devices)
        return found
