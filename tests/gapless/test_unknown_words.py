"""Functions that hand words on: none of them takes a word that nobody knows."""

import ast
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import gapless
from gapless.api.batches import plan_batches
from gapless.api.models import open_each, open_models
from gapless.formulations.errors import GaplessError
from gapless.formulations.plan import Plan
from gapless.tuning import tune_simulated

SOURCES = Path(gapless.__file__).parent
PROBLEM = "pixel7a/alexnet-sparse"
BOARD = gapless.on("pi@nosuchhost.invalid")


def _plan() -> Plan:
    found = gapless.plan(PROBLEM).plan
    assert found is not None
    return found


CALLS: dict[str, Callable[..., object]] = {
    "tune_simulated": partial(tune_simulated, gapless.load_problem(PROBLEM), gapless.load_problem(PROBLEM)),
    "run": lambda **word: gapless.run(PROBLEM, _plan(), **word),
    "open_models": lambda **word: open_models(["squeezenet"], **word),
    "open_each": lambda **word: open_each(["squeezenet"], **word),
    "plan_batches": lambda **word: plan_batches("yolov4", [1], platform="kirin990", **word),
    "compare": lambda **word: gapless.compare(PROBLEM, **word),
    "pareto": lambda **word: gapless.pareto(PROBLEM, "period,latency", **word),
    "this_device": BOARD.this_device,
    "profile": lambda **word: BOARD.profile("squeezenet", **word),
    "tune": lambda **word: BOARD.tune("squeezenet", **word),
    "Board.run": lambda **word: BOARD.run(gapless.load_problem(PROBLEM), _plan(), **word),
    "bench_engine": lambda **word: BOARD.bench_engine("squeezenet", **word),
    "serve": lambda **word: gapless.serve(["squeezenet"], port=0, **word),
}


def _taking_words() -> list[str]:
    """Return the names of all functions whose words are those of a typed dictionary."""
    trees = [
        ast.parse(path.read_text())
        for folder in ("api", "boards", "serving")
        for path in SOURCES.joinpath(folder).rglob("*.py")
    ]
    functions = [each for tree in trees for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)]
    words = [(each.name, each.args.kwarg) for each in functions]
    return [
        name for name, word in words if word and word.annotation and "Unpack" in ast.unparse(word.annotation)
    ]


def test_all_functions_that_take_words_are_tried() -> None:
    assert sorted(_taking_words()) == sorted(
        name.removeprefix("Board.") for name in CALLS if name != "tune_simulated"
    )


@pytest.mark.parametrize("value", [42, None])
@pytest.mark.parametrize("name", CALLS)
def test_a_word_that_nobody_knows_is_refused(name: str, value: object) -> None:
    with pytest.raises((TypeError, GaplessError), match="nonsense"):
        CALLS[name](nonsense=value)
