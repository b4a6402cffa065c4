"""What competing engines gain: plans of both engines against plans of each of them alone.

    python -m benchmarks.engines                            # five networks and PP-OCR, about half an hour
    python -m benchmarks.engines --networks squeezenet --budget 2 --quick

Each model is profiled once, with all engines: every engine has its own variant of each unit. Three problems
are made of that, so that they rest on the same measurements: one with the units of all engines, and one with
those of each engine alone. Each is tuned for at most `--budget` seconds; a model of which an engine lacks a
layer has no plan by that engine alone. Then the three that won run in turns, `--rounds` times for `--seconds`
each, so that drift hits all of them alike; what was picked as the fastest of many looks faster than it is,
which this measures anew.

Two engines have twice the baselines: a budget of 10 s ended in their first round, and what one visit picked
lost 11 % on resnet18.

"gain" is how much higher the rate of all engines together is than that of the better single engine (medians
of the rounds); "spread" is the largest distance of a round from its median. Where both tune to the same plan
it is noise.

PP-OCR are the three models (detection, direction, recognition) that come with `rapidocr_onnxruntime`, one by
one and, as `make demo-ocr` does, one after the other; where it is not installed it is said that they are left
out.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from rich.console import Console

import gapless
from benchmarks.arguments import parse_names
from gapless.executor.engines.registry import get_engine
from gapless.executor.machine.state import fingerprint
from gapless.executor.model import Model
from gapless.executor.pipeline.runner import PipelineRunner
from gapless.executor.runner import Budget
from gapless.executor.tuning.racing import Rung, TuningOptions
from gapless.formulations.costs import CostTable
from gapless.formulations.deployment import Deployment
from gapless.formulations.errors import GaplessError
from gapless.formulations.problem import Problem
from gapless.profiler.profile import Method, ProfileOptions
from gapless.view.layout import plain_table

ENGINES = "mnn,onnxruntime"
NETWORKS = "squeezenet,mobilenetv1,mobilenetv3-large,resnet18,deit-tiny"
OCR_SHAPES = {
    "det": ("ch_PP-OCRv4_det_infer.onnx", (1, 3, 480, 640)),
    "cls": ("ch_ppocr_mobile_v2.0_cls_infer.onnx", (1, 3, 48, 192)),
    "rec": ("ch_PP-OCRv4_rec_infer.onnx", (1, 3, 48, 320)),
}
QUICK = ProfileOptions(min_repetitions=10, min_seconds_per_item=0.02, checks=0, retries=0, most_far=2.0)
USUAL = ProfileOptions(checks=0, most_far=2.0)
TOP = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """One model: what each choice of engines tuned to, and the period of each round of it.

    Attributes
    ----------
    network
        Name of the model.
    chosen
        What won, by choice of engines.
    periods_us
        By choice of engines.
    lacking
        Why a choice has no plan.
    """

    network: str
    chosen: Mapping[str, Deployment]
    periods_us: Mapping[str, Sequence[float]]
    lacking: Mapping[str, str]

    def rate(self, choice: str) -> float | None:
        """Return the requests in a second, median of the rounds."""
        return 1e6 / median(self.periods_us[choice]) if choice in self.chosen else None

    @property
    def spread(self) -> float:
        """Return by how much a round is off the median of its choice at most."""
        return max(abs(one / median(own) - 1) for own in self.periods_us.values() for one in own)


def main() -> None:
    """Run the contests and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--networks", default=NETWORKS, help=f"built-in networks or files (default {NETWORKS})"
    )
    parser.add_argument("--no-ocr", action="store_true", help="leave out PP-OCR")
    parser.add_argument("--units", default="", help="units to use (default: all)")
    parser.add_argument(
        "--budget", type=float, default=40.0, help="most seconds of racing for each choice (default 40)"
    )
    parser.add_argument("--rounds", type=int, default=7, help="of the last comparison (default 7)")
    parser.add_argument(
        "--seconds", type=float, default=1.0, help="for each choice in each round (default 1)"
    )
    parser.add_argument("--quick", action="store_true", help="profile with little effort")
    asked = parser.parse_args()
    console = Console()
    console.print(
        f"{fingerprint()}; {asked.rounds} rounds of {asked.seconds:g} s, budgets of {asked.budget:g} s"
    )
    found = []
    for model in models(parse_names(asked.networks), ocr=not asked.no_ocr, console=console):
        found.append(contest(model, asked))
        console.print(*words(found[-1]), sep="\n", soft_wrap=True)
    console.print(table(found))


def models(names: Sequence[str], *, ocr: bool, console: Console) -> Iterator[Model]:
    """Yield the models one after the other, because each may be large."""
    yield from map(gapless.open_model, names)
    spec = find_spec("rapidocr_onnxruntime") if ocr else None
    if spec is None or spec.origin is None:
        if ocr:
            console.print("PP-OCR is left out: pip install rapidocr_onnxruntime")
        return
    folder = Path(spec.origin).parent / "models"
    located = {name: f"{name}={folder / file}" for name, (file, _) in OCR_SHAPES.items()}
    for name, (_, shape) in OCR_SHAPES.items():
        yield gapless.open_model(located[name], shapes={"x": shape})
    shapes = {f"{name}/x": shape for name, (_, shape) in OCR_SHAPES.items()}
    yield gapless.running.open_models(list(located.values()), shapes=shapes)


def contest(model: Model, asked: argparse.Namespace) -> Contest:
    """Tune a model with all engines and with each alone, and measure what won in turns."""
    engines = ENGINES.split(",")
    platform = gapless.this_device(engine=engines, units=parse_names(asked.units))
    taken = gapless.profile(
        model, platform=platform, methods=tuple(Method), options=QUICK if asked.quick else USUAL
    )
    problem = gapless.profiled_problem(taken)
    options = TuningOptions(budget_s=asked.budget, rungs=(Rung(seconds=0.3), Rung(seconds=0.5, rounds=3)))
    chosen: dict[str, Deployment] = {}
    lacking: dict[str, str] = {}
    for choice in (*engines, ENGINES):
        try:
            tuned = gapless.tune(of_engines(problem, choice.split(",")), top=TOP, options=options)
        except GaplessError as error:
            lacking[choice] = str(error)
            continue
        if tuned.deployment is None:
            lacking[choice] = "nothing was measured within the budget"
        else:
            chosen[choice] = tuned.deployment
    periods: dict[str, list[float]] = {choice: [] for choice in chosen}
    named = {model.network.name: model}
    with PipelineRunner(named, problem.platform, get_engine(engines[0]), max_open=len(chosen) or 1) as runner:
        for _ in range(asked.rounds):
            for choice, deployment in chosen.items():
                measured = runner.measure(deployment, Budget(seconds=asked.seconds))
                periods[choice].append(measured.period_us)
    return Contest(network=model.network.name, chosen=chosen, periods_us=periods, lacking=lacking)


def of_engines(problem: Problem, engines: Sequence[str]) -> Problem:
    """Return a problem with the units of some engines only.

    Raises
    ------
    GaplessError
        None of them runs some layer.
    """
    kept = [index for index, unit in enumerate(problem.platform.units) if unit.engine.name in engines]
    (costs,) = problem.costs.networks
    table = replace(
        costs,
        layer_us=tuple(tuple(row[index] for index in kept) for row in costs.layer_us),
        transfer_in_us=tuple(tuple(row[index] for index in kept) for row in costs.transfer_in_us),
        transfer_out_us=tuple(tuple(row[index] for index in kept) for row in costs.transfer_out_us),
    )
    units = tuple(problem.platform.units[index] for index in kept)
    if not units or any(all(time is None for time in row) for row in table.layer_us):
        raise GaplessError(f"{', '.join(engines)} cannot run every layer")
    return Problem(
        platform=replace(problem.platform, units=units),
        networks=problem.networks,
        costs=CostTable(
            units=tuple(unit.name for unit in units),
            networks=(table,),
            provenance=problem.costs.provenance,
        ),
    )


def words(found: Contest) -> Iterator[str]:
    """Yield what each choice of engines runs, and how fast."""
    yield found.network
    for choice, deployment in found.chosen.items():
        yield f"  {choice}: {found.rate(choice):.1f}/s by {deployment}"
    for choice, reason in found.lacking.items():
        yield f"  {choice}: no plan, {reason}"


def table(found: Sequence[Contest]) -> object:
    """Return the table: rates of each engine alone and of all, and what that gains."""
    engines = ENGINES.split(",")
    columns = (*engines, "both", "gain", "spread")
    shown = plain_table("network", *columns, numbers=columns)
    for one in found:
        alone, both = [one.rate(engine) for engine in engines], one.rate(ENGINES)
        best = max((rate for rate in alone if rate is not None), default=None)
        gain = None if best is None or both is None else 100 * (both / best - 1)
        rates = ["-" if rate is None else f"{rate:.1f}/s" for rate in (*alone, both)]
        change = "-" if gain is None else f"{gain:+.1f} %"
        shown.add_row(one.network, *rates, change, f"{100 * one.spread:.0f} %")
    return shown


if __name__ == "__main__":
    main()
