"""Training predictors: every method on all that was measured, and judged on what each time was held out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from ...executor.progress import Report, Step, silent
from ...formulations.errors import InvalidInputError
from ...formulations.files import dump, load, save
from ...formulations.hardware import Platform, ProcessingUnit
from .device import DEVICE, REFERENCE, DeviceDescription, Embedding
from .examples import LEAST_US, Dataset, dataset_of
from .features import NetworkFeatures
from .measuring import YARDSTICKS
from .predictors import (
    CARD,
    CARD_FILE,
    TRAINED,
    ErrorRow,
    Nearest,
    PredictionMethod,
    Predictor,
    PredictorCard,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


MEASURED = "measured"
"""Folder of a data set inside the folder of a predictor."""

QUOTAS = (500, 250)
"""Shares of the processor time (permille) of the slower devices that are emulated for a data set."""


def data_platform(platform: Platform, quotas: Sequence[int] = QUOTAS) -> Platform:
    """Return a platform whose units are device types: as they are, and the first core with quotas.

    Units of several cores are not emulated: threads that wait for each other lose more than the quota says
    (see `executor.machine.quota`). The units share cores; they are measured one after the other.
    """
    single = next((unit for unit in platform.units if len(unit.cores) == 1), None)
    slow: list[ProcessingUnit] = []
    if single is not None:
        slow = [
            replace(single, name=f"{single.name}-{quota / 10:g}%", quota_permille=quota) for quota in quotas
        ]
    return replace(platform, units=(*platform.units, *slow))


def data_path(folder: Path, network: str, engine: str) -> Path:
    """Return where the times of a network by an engine stand."""
    return folder / MEASURED / f"{network}.{engine}.json"


def keep(found: DeviceDescription, path: Path) -> None:
    """Write one file of a data set; it is there only when it is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    save(dump(found, DEVICE), path)


def load_dataset(folder: Path) -> tuple[DeviceDescription, ...]:
    """Return what was measured, in the order of the files."""
    paths = sorted((folder / MEASURED).glob("*.json"))
    if not paths:
        raise InvalidInputError(f"{folder} holds no data set: `gapless costs learn {folder}` measures one")
    return tuple(load(path, DEVICE) for path in paths)


Predict = Callable[[NetworkFeatures, Sequence[Embedding]], "NDArray[Any]"]
"""From a network and devices to microseconds by [device][layer]."""

FAMILIES = (
    ("alexnet", "vgg16", "bert", "bert-large", "two-tower", "fsrnet"),
    ("resnet34", "resnet50", "vit", "vit-large", "deit-small", "arcface-resnet50", "arcface-mobilenet"),
    ("inceptionv3", "inceptionv4", "mobilenetv1", "retinaface", "nasnet-single", "nasnet-large"),
    (
        *("yolov2", "yolov4", "mobilenetv3-large", "lstm-attention"),
        *("efficientnet-lite1", "efficientnet-lite2", "efficientnet-lite3", "efficientdet-lite0"),
    ),
)
"""Networks that are held out together: never the one while its sibling is learned from, but for the
yardsticks, which describe a device and so are known."""

Errors = dict[str, list[float]]
"""Relative errors, predicted over measured minus one, of "layers", "shards" and "networks"."""


def folds(networks: Sequence[str], yardsticks: Sequence[str]) -> list[tuple[str, ...]]:
    """Return which networks are held out together; networks of no known family are shared out in turn."""
    known = {name for family in FAMILIES for name in family}
    others = [name for name in networks if name not in known and name not in yardsticks]
    found = [
        (*(name for name in family if name in networks), *others[place :: len(FAMILIES)])
        for place, family in enumerate(FAMILIES)
    ]
    return [fold for fold in found if fold]


def errors_of(data: Dataset, predict: Predict) -> Errors:
    """Return the errors of a predictor on all that a data set holds.

    Shards are judged as a plan sees them: by the sum of their layers in the table of the whole network, and
    what a session costs on the device.
    """
    found: Errors = {"layers": [], "shards": [], "networks": []}
    for kind in data.types:
        for entry in kind.times:
            features = data.networks[entry.network]
            layer_us = np.maximum(predict(features, [kind.embedding])[0], 1.0)
            if entry.layer_us:
                measured = np.array(entry.layer_us)
                kept = measured >= LEAST_US
                found["layers"] += list(layer_us[kept] / measured[kept] - 1)
            for span in entry.spans:
                whole = span.stop - span.start == len(layer_us)
                predicted = layer_us[span.start : span.stop].sum() + kind.embedding.session_us
                found["networks" if whole else "shards"].append(float(predicted / span.run_us - 1))
    return found


def merged(parts: Sequence[Errors]) -> Errors:
    """Return the errors of several parts together."""
    return {what: [error for part in parts for error in part[what]] for what in parts[0]}


def rows_of(
    method: PredictionMethod | str, split: str, errors: Mapping[str, Sequence[float]]
) -> tuple[ErrorRow, ...]:
    """Return errors in a few numbers."""
    rows = []
    for what, values in errors.items():
        if values:
            absolute = np.abs(values)
            rows.append(
                ErrorRow(
                    method=str(method),
                    split=split,
                    what=what,
                    count=len(values),
                    median=float(np.median(absolute)),
                    p90=float(np.percentile(absolute, 90)),
                    above_20=float((absolute > 0.2).mean()),
                )
            )
    return tuple(rows)


FEWEST_NETWORKS = 4
"""With fewer, nothing can be held out and something be learned from."""

SPLIT = "networks held out"

DECISIVE = "shards"
"""What the usual method is best at: plans are made of shards."""


def train(
    descriptions: Sequence[DeviceDescription], folder: Path, *, report: Report = silent
) -> PredictorCard:
    """Train all methods on a data set, judge them, and write the predictor."""
    begin = time.monotonic()
    data = dataset_of(descriptions)
    if len(data.networks) < FEWEST_NETWORKS:
        raise InvalidInputError(
            f"{len(data.networks)} networks are too few to learn from, {FEWEST_NETWORKS} are needed: measure "
            "more of them (`gapless costs learn FOLDER --networks ...`)"
        )
    rows = cross_validated(data, report=report)
    write_files(data, folder, report=report)
    card = PredictorCard(
        default=best_of(rows),
        trained_at=datetime.now().astimezone().isoformat(timespec="seconds"),
        seconds=round(time.monotonic() - begin, 1),
        networks=tuple(data.networks),
        devices=tuple(kind.name + (" (emulated)" if kind.emulated else "") for kind in data.types),
        shards=sum(len(entry.spans) for kind in data.types for entry in kind.times),
        layers=sum(len(entry.layer_us) for kind in data.types for entry in kind.times),
        errors=rows,
    )
    save(dump(card, CARD), folder / CARD_FILE)
    return card


def write_files(data: Dataset, folder: Path, *, extended: bool = True, report: Report = silent) -> None:
    """Train all methods on all of a data set, and write their files."""
    _require_libraries()
    from .transformer import train_transformer, write_transformer
    from .trees import train_trees, write_trees

    folder.mkdir(parents=True, exist_ok=True)
    transformer = train_transformer(data, extended=extended, report=report)
    write_transformer(transformer, folder / TRAINED[PredictionMethod.TRANSFORMER])
    trees = train_trees(data, extended=extended)
    write_trees(trees, folder / TRAINED[PredictionMethod.TREES], devices=len(REFERENCE))
    Nearest.of(data, extended=extended).write(folder / TRAINED[PredictionMethod.NEAREST])


@contextmanager
def trained(data: Dataset, *, extended: bool = True, report: Report = silent) -> Iterator[Predictor]:
    """Return a predictor that is trained on a data set, and gone afterwards."""
    with TemporaryDirectory() as folder:
        write_files(data, Path(folder), extended=extended, report=report)
        yield Predictor(Path(folder), extended=extended)


def cross_validated(data: Dataset, *, report: Report = silent) -> tuple[ErrorRow, ...]:
    """Return the errors of all methods, each time on networks that were held out from training."""
    parts: dict[PredictionMethod, list[Errors]] = {method: [] for method in PredictionMethod}
    for predictor, judged in fold_predictors(data, report=report):
        for method, found in parts.items():
            found.append(errors_of(judged, predict_by(predictor, method)))
    return tuple(row for method, found in parts.items() for row in rows_of(method, SPLIT, merged(found)))


def fold_predictors(
    data: Dataset, *, extended: bool = True, report: Report = silent
) -> Iterator[tuple[Predictor, Dataset]]:
    """Return predictors that were trained without some networks, each with what it is judged by."""
    held = folds(tuple(data.networks), YARDSTICKS)
    for place, names in enumerate(held):

        def told(step: Step, place: int = place) -> None:
            report(replace(step, text=f"{step.text}, part {place + 1} of {len(held) + 1}"))

        rest = data.select(networks=set(data.networks) - set(names))
        with trained(rest, extended=extended, report=told) as predictor:
            yield predictor, data.select(networks=names)


def predict_by(predictor: Predictor, method: PredictionMethod) -> Predict:
    """Return one method of a predictor as a function."""
    return lambda features, embeddings: predictor.layer_us(features, embeddings, method)


def best_of(rows: Sequence[ErrorRow]) -> PredictionMethod:
    """Return the method with the least median error of shards."""
    shards = [row for row in rows if row.what == DECISIVE]
    return PredictionMethod(min(shards, key=lambda row: row.median).method)


def _require_libraries() -> None:
    from importlib.util import find_spec

    missing = [name for name in ("torch", "lightgbm", "onnxscript", "onnxruntime") if find_spec(name) is None]
    if missing:
        raise InvalidInputError(
            f"training needs {', '.join(missing)}: pip install 'gapless[learn]' (predicting does not)"
        )
