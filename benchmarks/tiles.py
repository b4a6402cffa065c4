"""Whether tiles compute what the whole model computes: random chunks of many networks, divided at random.

    python -m benchmarks.tiles --count 300

A combination is a network, a chunk between two of its legal cuts, rows or columns, and a division into 2 to 4
tiles of random sizes. Every tile runs in ONNX Runtime on the parts of the right tensors that it asks for;
what it makes is compared with the same part of the right result. Built-in networks run on small images, so
that it does not take long; their layers are the same. Chunks that cannot be divided are drawn again and
counted. It ends with exit code 1 if any tile is wrong.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from random import Random
from time import perf_counter
from typing import TYPE_CHECKING, Any

import onnx
from rich.console import Console
from rich.table import Table

from gapless.executor.comparing import Allowed, Reference
from gapless.executor.engines.ort_session import reference_outputs
from gapless.executor.graph.onnx_model import OnnxModel, load_onnx
from gapless.executor.graph.tiling import Tiler
from gapless.executor.model import Piece, TensorPart, tolerance
from gapless.formulations.errors import InvalidPlanError
from gapless.formulations.spatial import Axis, Interval
from gapless.profiler.zoo.catalog import zoo_path

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Tensors = Mapping[str, NDArray[Any]]

NETWORKS = {
    "squeezenet": 96,
    "googlenet": 96,
    "inceptionv3": 160,
    "mobilenetv1": 96,
    "mobilenetv2": 96,
    "mobilenetv3-large": 96,
    "resnet18": 96,
    "resnet50": 96,
    "yolov2": 96,
    "yolov4": 96,
}
"""Built-in networks, and the sides of the images on which they run here."""

OCR = {"det": (1, 3, 160, 192), "cls": (1, 3, 48, 192), "rec": (1, 3, 48, 160)}
"""Text models of PP-OCRv4, and the shapes of their inputs."""

_MEAN_LAYERS = 6
_MOST_PARTS = 4


def small(name: str, side: int, folder: Path) -> OnnxModel:
    """Return a built-in network for images of another size."""
    proto = onnx.load(str(zoo_path(name)))
    del proto.graph.value_info[:]
    for value in proto.graph.input:
        for dimension in value.type.tensor_type.shape.dim[2:]:
            dimension.dim_value = side
    for value in proto.graph.output:
        value.type.tensor_type.ClearField("shape")
    path = folder / f"{name}.onnx"
    onnx.save(proto, str(path))
    return load_onnx(path, name=name)


def ocr(task: str) -> OnnxModel:
    """Return one of the text models of the package rapidocr_onnxruntime."""
    spec = find_spec("rapidocr_onnxruntime")
    if spec is None or spec.origin is None:
        raise SystemExit("the text models are missing: pip install rapidocr-onnxruntime")
    (path,) = Path(spec.origin).with_name("models").glob(f"*_{task}_infer.onnx")
    return load_onnx(path, shapes={"x": OCR[task]}, name=f"ppocr-{task}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination:
    """A chunk of a network, and how it is divided."""

    start: int
    stop: int
    axis: Axis
    parts: tuple[Interval, ...]


@dataclass(slots=True)
class Trial:
    """Tiles of one network against the whole.

    Attributes
    ----------
    model
        The network.
    refused
        How many chunks that were drawn cannot be divided.
    """

    model: OnnxModel
    refused: int = 0
    _tiler: Tiler = field(init=False)
    _right: Tensors = field(init=False)

    def __post_init__(self) -> None:
        self._tiler = Tiler(self.model)
        inputs = self.model.sample_inputs(1)
        crossing = [tensor.name for tensor in self.model.network.tensors if tensor.source >= 0]
        self._right = {**inputs, **self.model.reference(inputs, also=crossing)}

    def combinations(self, random: Random) -> Iterator[Combination]:
        """Yield combinations without end."""
        network = self.model.network
        cuts = [0, *network.legal_cuts, len(network.layers)]
        while True:
            first = random.randrange(len(cuts) - 1)
            last = min(len(cuts) - 1, first + 1 + int(random.expovariate(1 / _MEAN_LAYERS)))
            start, stop, axis = cuts[first], cuts[last], random.choice(list(Axis))
            try:
                total = self._tiler.rows(start, stop, axis)
            except InvalidPlanError:
                self.refused += 1
                continue
            inner = random.sample(range(1, total), min(total - 1, random.randint(1, _MOST_PARTS - 1)))
            bounds = [0, *sorted(inner), total]
            yield Combination(start=start, stop=stop, axis=axis, parts=tuple(pairwise(bounds)))

    def pieces(self, chosen: Combination) -> list[Piece]:
        """Return the tiles of a combination."""
        return [self._tiler.piece(chosen.start, chosen.stop, chosen.axis, part) for part in chosen.parts]

    def errors(self, chosen: Combination) -> Iterator[tuple[str, float]]:
        """Yield (tile, worst error of its results) for each tile of a combination."""
        for piece in self.pieces(chosen):
            parts = {part.whole.name: part for part in piece.parts}
            feeds = {spec.name: parts[spec.name].of(self._right[spec.name]) for spec in piece.inputs}
            found = reference_outputs(piece.content.read(), feeds)
            yield (
                piece.name,
                max(self._error(array, parts[name]) for name, array in found.items()),
            )

    def _error(self, found: NDArray[Any], part: TensorPart) -> float:
        right = self._right[part.whole.name]
        whole = right.copy()
        part.of(whole)[...] = found
        return Reference.of([right]).compare(whole, 0, Allowed(tolerance("high")), part=part).error


def main() -> None:
    """Run, print a table, and fail if a tile is wrong."""
    options = _arguments()
    table = Table(title=f"tiles against the whole, seed {options.seed}", title_justify="left")
    for column in ("network", "combinations", "tiles", "not divisible", "worst error", "seconds"):
        table.add_column(column, justify="left" if column == "network" else "right")
    names = [*NETWORKS, *(f"ppocr-{task}" for task in OCR)]
    shares = [
        options.count // len(names) + (index < options.count % len(names)) for index in range(len(names))
    ]
    allowed, wrong, worst, tiles = tolerance("high"), [], 0.0, 0
    with tempfile.TemporaryDirectory() as folder, Console(stderr=True).status("") as status:
        for name, share in zip(names, shares, strict=True):
            status.update(f"{name}: {share} combinations")
            began = perf_counter()
            model = small(name, NETWORKS[name], Path(folder)) if name in NETWORKS else ocr(name[6:])
            trial = Trial(model)
            drawn = trial.combinations(Random(f"{options.seed} {name}"))
            found = [pair for _ in range(share) for pair in trial.errors(next(drawn))]
            wrong += [f"{tile}: relative error {error:.2g}" for tile, error in found if not error <= allowed]
            most = max(error for _, error in found)
            worst, tiles = max(worst, most), tiles + len(found)
            row = (share, len(found), trial.refused, f"{most:.1e}", f"{perf_counter() - began:.1f}")
            table.add_row(name, *map(str, row))
    console = Console(width=118)
    console.print(table)
    console.print(
        f"{sum(shares)} combinations, {tiles} tiles: worst error {worst:.1e}, allowed is {allowed:g}"
    )
    if wrong:
        sys.exit("\n".join([f"{len(wrong)} tiles are wrong:", *wrong]))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--count", type=int, default=300, help="combinations in all")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
