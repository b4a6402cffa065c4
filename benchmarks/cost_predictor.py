"""How well costs are predicted on networks and devices that had no part in the training, and what plans lose.

    gapless costs learn DATA --no-train          # measures the data set first; go on whenever you like
    python -m benchmarks.cost_predictor DATA     # trains a dozen times; 5 to 10 minutes
    python -m benchmarks.cost_predictor DATA --shipped     # what is shipped, on networks new to it

Networks are held out in families (the resnets together, the vision transformers together, ...), never a layer
of a network that is learned from. Held-out devices are described by the yardsticks alone, and judged on
networks that were learned from ("known") and on such that were not ("new"). Times of shards are those that a
plan sees: sums of layers of the table of the whole network, and the cost of a session. "table 1" sees only
what EPipe's Table 1 names. Plans are made for the device types that are not emulated as if each were a device
of its own; the loss is the period of the plan made on predicted costs over that of the plan made on measured
ones, minus one, both by the measured costs.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import gapless
from gapless.formulations.costs import Provenance
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.formulations.network import Network
from gapless.formulations.problem import Problem
from gapless.profiler.learned.examples import Dataset, DeviceType, dataset_of
from gapless.profiler.learned.features import table_features
from gapless.profiler.learned.measuring import YARDSTICKS
from gapless.profiler.learned.predictors import TRAINED, PredictionMethod, Predictor
from gapless.profiler.learned.tables import costs_of
from gapless.profiler.learned.training import (
    SPLIT,
    Errors,
    errors_of,
    fold_predictors,
    load_dataset,
    merged,
    predict_by,
    rows_of,
    trained,
)
from gapless.view.layout import plain_table

PAPER = {"data": "30 to 50 min", "training": "< 3 min", "prediction": "0.6 s"}
"""What EPipe prints (section 4.4)."""

SHARDS = 500
DEVICES = {
    "two threads": " all",
    "quota of 25 %": "-25%",
    "the other engine": "onnxruntime ",
}
"""Device types that are held out together, by a part of their names."""


@dataclass(slots=True)
class Found:
    """Errors and losses of one method over all parts of a split."""

    errors: list[Errors] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="folder of a data set (gapless costs learn DATA --no-train)")
    parser.add_argument("--shipped", action="store_true", help="judge the predictor that is shipped, no more")
    asked = parser.parse_args()
    folder: Path = asked.data
    console = Console()
    data = dataset_of(load_dataset(folder))
    print_data(console, data)
    new, errors = shipped_on_new(data)
    if new:
        print_errors(console, f"what is shipped, on {len(new)} networks new to it: {', '.join(new)}", errors)
    if asked.shipped:
        return
    begin = time.perf_counter()
    by_network, judged = networks_held_out(data)
    seconds = time.perf_counter() - begin
    if not judged:
        parser.error(
            f"{folder} has no network to hold out: measure more than those that devices are described by"
        )
    print_errors(console, SPLIT, {str(method): found.errors for method, found in by_network.items()})
    print_distribution(console, by_network)
    print_losses(console, by_network, judged)
    print_errors(console, f"{SPLIT}, table 1 only", networks_by_table_1(data))
    for name, part in DEVICES.items():
        for split, errors in device_held_out(data, {kind.name for kind in data.types if part in kind.name}):
            print_errors(console, f"device held out: {name}; networks {split}", errors)
    print_speed(console, data, seconds)


def shipped_on_new(data: Dataset) -> tuple[list[str], Mapping[str, Sequence[Errors]]]:
    """Return networks that the shipped predictor was not trained on, and its errors on them."""
    shipped = Predictor(None)
    new = [name for name in data.networks if name not in shipped.card.networks]
    judged = data.select(networks=new)
    return new, {str(m): [errors_of(judged, predict_by(shipped, m))] for m in PredictionMethod}


def networks_held_out(data: Dataset) -> tuple[dict[PredictionMethod, Found], int]:
    """Return errors and losses of all methods on networks that were held out, and how many networks."""
    found = {method: Found() for method in PredictionMethod}
    count = 0
    for predictor, judged in fold_predictors(data):
        count += len(judged.networks)
        for method, entry in found.items():
            entry.errors.append(errors_of(judged, predict_by(predictor, method)))
            entry.losses += losses(judged, predictor, method)
    return found, count


def networks_by_table_1(data: Dataset) -> Mapping[str, Sequence[Errors]]:
    """Return the errors of what is trained on Table 1 alone."""
    methods = (PredictionMethod.TRANSFORMER, PredictionMethod.TREES, PredictionMethod.NEAREST)
    found: dict[str, list[Errors]] = {str(method): [] for method in methods}
    for predictor, judged in fold_predictors(data, extended=False):
        for method in methods:
            found[method].append(errors_of(judged, predict_by(predictor, method)))
    return found


def device_held_out(
    data: Dataset, held: Collection[str]
) -> Iterator[tuple[str, Mapping[str, Sequence[Errors]]]]:
    """Return errors on device types that were held out: on known networks, and on new ones."""
    new = {name for name in data.networks if name not in YARDSTICKS}
    new = set(sorted(new)[::3])
    known = set(data.networks) - new
    rest = data.select(networks=known, types={kind.name for kind in data.types} - set(held))
    with trained(rest) as predictor:
        for split, part in (("known", known), ("new", new)):
            judged = data.select(networks=part, types=held)
            yield (
                split,
                {
                    str(method): [errors_of(judged, predict_by(predictor, method))]
                    for method in PredictionMethod
                },
            )


def losses(judged: Dataset, predictor: Predictor, method: PredictionMethod) -> Iterator[float]:
    """Return what plans lose that are made on predicted costs, by network."""
    kinds = [kind for kind in judged.types if not kind.emulated]
    for name, features in judged.networks.items():
        measured = {
            kind.name: entry.layer_us
            for kind in kinds
            for entry in kind.times
            if entry.network == name and entry.layer_us
        }
        there = [kind for kind in kinds if kind.name in measured]
        if len(there) > 1:
            predicted = predictor.layer_us(features, [kind.embedding for kind in there], method)
            found = gapless.costs.judge_prediction(
                _problem(name, there, predicted.tolist()),
                _problem(name, there, [measured[kind.name] for kind in there]),
            )
            yield found.loss


def _problem(name: str, kinds: Sequence[DeviceType], columns: Sequence[Sequence[float]]) -> Problem:
    network = _network(name)
    units = tuple(ProcessingUnit(name=kind.embedding.unit) for kind in kinds)
    return Problem(
        platform=Platform(name="devices", units=units),
        networks=(network,),
        costs=costs_of(network, [kind.embedding for kind in kinds], columns, Provenance()),
    )


@cache
def _network(name: str) -> Network:
    return gapless.open_model(name).network


def print_data(console: Console, data: Dataset) -> None:
    """Say what was measured."""
    table = plain_table("device type", "networks", "shards", "layers", "regression's error")
    for kind in data.types:
        table.add_row(
            kind.name + (" (emulated)" if kind.emulated else ""),
            str(len(kind.times)),
            str(sum(len(entry.spans) for entry in kind.times)),
            str(sum(len(entry.layer_us) for entry in kind.times)),
            f"{kind.embedding.error:.1%}",
        )
    console.print(table, "")


def print_errors(console: Console, split: str, errors: Mapping[str, Sequence[Errors]]) -> None:
    """Print the absolute relative errors of methods."""
    table: Table = plain_table("predictor", "errors of", "count", "median", "p90", "above 20 %")
    for method, parts in errors.items():
        for row in rows_of(method, split, merged(parts)):
            numbers = (f"{row.median:.1%}", f"{row.p90:.1%}", f"{row.above_20:.0%}")
            table.add_row(method, row.what, str(row.count), *numbers)
    console.print(split, table, "", sep="\n")


def print_distribution(console: Console, found: Mapping[PredictionMethod, Found]) -> None:
    """Print how the relative errors of some held-out shards are distributed (the paper's Figure 2)."""
    marks = (5, 25, 50, 75, 95)
    table: Table = plain_table("predictor", "shards", *(f"p{mark}" for mark in marks), "above 20 %")
    for method, entry in found.items():
        errors = merged(entry.errors)["shards"]
        drawn = np.array(random.Random(0).sample(errors, min(SHARDS, len(errors))))
        spread = (f"{value:+.0%}" for value in np.percentile(drawn, marks))
        table.add_row(str(method), str(len(drawn)), *spread, f"{(np.abs(drawn) > 0.2).mean():.0%}")
    console.print(
        "relative errors of held-out shards, drawn at random (EPipe, Figure 2)", table, "", sep="\n"
    )


def print_losses(console: Console, found: Mapping[PredictionMethod, Found], networks: int) -> None:
    """Print what plans lose."""
    table: Table = plain_table("predictor", "plans", "median", "mean", "worst")
    for method, entry in found.items():
        if entry.losses:
            lost = np.array(entry.losses)
            row = (f"{value:.1%}" for value in (np.median(lost), lost.mean(), lost.max()))
            table.add_row(str(method), str(len(lost)), *row)
    console.print(f"loss of plans for {networks} held-out networks on measured costs", table, "", sep="\n")


def print_speed(console: Console, data: Dataset, seconds: float) -> None:
    """Print times and sizes beside the paper's."""
    predictor = Predictor()
    card = predictor.card
    network, features = table_features("vit-huge")
    devices = [kind.embedding for kind in data.types][:6]
    table: Table = plain_table("", "here", "paper's")
    table.add_row(
        "training and judging in 4 parts", f"{seconds:.0f} s", PAPER["training"] + " (one training)"
    )
    table.add_row("training of what is shipped, judged", f"{card.seconds:.0f} s", PAPER["training"])
    for method in PredictionMethod:
        begin = time.perf_counter()
        predictor.layer_us(features, devices, method)
        spent = time.perf_counter() - begin
        table.add_row(
            f"{method}: vit-huge ({len(network.layers)} layers) on {len(devices)} devices",
            f"{spent:.3f} s",
            PAPER["prediction"],
        )
    shipped = files("gapless.profiler.learned").joinpath("shipped")
    for method, name in TRAINED.items():
        table.add_row(f"{method}: shipped", f"{len(shipped.joinpath(name).read_bytes()) / 1000:.0f} kB", "-")
    console.print(table)


if __name__ == "__main__":
    main()
