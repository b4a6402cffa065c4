"""Costs on devices that never ran a network: describe a device, predict, learn anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from ...files import documents
from ...profiler.learned.predictors import PredictionMethod
from ...question.fields import Only, said
from ...question.subjects import Machine, Opening
from ...question.values import LIST
from ..base.answer import Answer, command
from ..base.general_options import argument, heading
from ..options.models import ModelArgument
from ..options.problem import OutOption

_prediction_option = heading("How to predict")
_learning_option = heading("How to learn")

DescriptionOption = Annotated[
    Path,
    _prediction_option("--device", metavar="FILE", help="The device, as `gapless device describe` wrote it."),
]
MethodOption = Annotated[
    PredictionMethod | None,
    _prediction_option(
        "--model", help="Which predictor; otherwise the one that was best on networks that it did not know."
    ),
]
PredictorOption = Annotated[
    Path | None,
    _prediction_option(
        metavar="FOLDER",
        help="A predictor of your own, as `gapless costs learn` wrote it; otherwise the shipped one.",
    ),
]
MeasuredOption = Annotated[
    Path | None,
    _prediction_option(
        metavar="PROBLEM",
        help="A problem of the same layers and units with measured costs: say how far the predicted ones are "
        "from them, and what a plan loses that is made on predictions.",
    ),
]
NetworksOption = Annotated[
    tuple[str, ...],
    said(
        "Networks to run: built-in ones, or ONNX files; otherwise a usual selection.",
        LIST,
        heading="How to learn",
    ),
]
FolderArgument = Annotated[
    Path,
    argument("FOLDER", "Where the data set and the predictor are."),
]


@command("gapless device describe --units core0 --networks squeezenet --out device.json")
def device_describe(
    *,
    networks: NetworksOption = (),
    machine: Machine,
    out: OutOption = None,
) -> Answer:
    """Run a few small networks on this device, so that the costs of others can be predicted for it."""
    from ...answers.prediction import device_blocks
    from ...api import estimates
    from ...api.engines import DEFAULT_ENGINE
    from ...formulations.files import dump
    from ...profiler.learned.device import DEVICE
    from ...profiler.learned.measuring import YARDSTICKS
    from ..base.progress import StepLine
    from ..tasks import measuring

    chosen = machine.engine or DEFAULT_ENGINE
    notes = measuring.busy_notes()
    with StepLine() as line:
        found = estimates.describe_device(
            platform=measuring.platform_of(machine, chosen),
            engine=chosen,
            networks=networks or YARDSTICKS,
            report=line.report,
        )
    return Answer(
        document=lambda: json.loads(dump(found, DEVICE)),
        view=lambda: device_blocks(found),
        notes=[*notes, *found.notes],
        files={"out": lambda: dump(found, DEVICE)},
    )


@command(
    "gapless costs predict resnet50 --device device.json --out estimated.json",
    "gapless costs predict vit-large --device device.json --model transformer",
)
def costs_predict(
    model: ModelArgument,
    *,
    device: DescriptionOption,
    method: MethodOption = None,
    predictor: PredictorOption = None,
    against: MeasuredOption = None,
    opening: Annotated[Opening, Only.of("shape")],
    out: OutOption = None,
) -> Answer:
    """Predict what layers cost on a device that never ran them; writes a problem for `gapless plan`."""
    from ...answers.prediction import judged_blocks
    from ...api import estimates
    from ..tasks.showing import described

    problem = estimates.predict_costs(
        model, device, method=method, predictor=predictor, shapes=opening.shape or {}
    )
    judged = None if against is None else estimates.judge_prediction(problem, against)
    return described(
        problem,
        notes=[f"estimated: {problem.costs.provenance.notes}"],
        after=[] if judged is None else list(judged_blocks(problem, judged)),
        judged=None if judged is None else {**documents.plain_data(judged), "loss": judged.loss},
    )


@command(
    "gapless costs learn predictor",
    "gapless costs learn predictor --no-measure",
)
def costs_learn(
    folder: FolderArgument,
    *,
    networks: NetworksOption = (),
    engines: Annotated[tuple[str, ...], said("What runs them.", LIST, heading="How to learn")] = (
        "mnn",
        "onnxruntime",
    ),
    measure: Annotated[
        bool, _learning_option(help="Measure what the folder does not hold yet.", show_default=True)
    ] = True,
    train: Annotated[
        bool, _learning_option(help="Train on everything that the folder holds.", show_default=True)
    ] = True,
) -> Answer:
    """Measure networks and random shards on this device, and train a predictor; goes on where it stopped."""
    from ...answers.prediction import card_blocks
    from ...api import estimates
    from ..base.progress import StepLine
    from ..tasks import measuring

    notes = measuring.busy_notes() if measure else []
    with StepLine() as line:
        found = estimates.learn_costs(
            folder,
            networks=networks or None,
            engines=engines,
            measure=measure,
            train=train,
            report=line.report,
        )
    return Answer.of(
        "predictor",
        found.card or {},
        lambda: "measured" if found.card is None else card_blocks(found.card),
        notes=[*notes, *found.left_out, f"wrote {folder}"],
    )
