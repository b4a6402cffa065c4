from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest

from gapless.api.models import open_model
from gapless.api.problems import load_problem, table_problem
from gapless.boards import packing as module
from gapless.boards.packing import Packing
from gapless.cli.main import every_command
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.files import dump_problem
from gapless.formulations.files import load_problem as read_problem
from tests.executor.graph.models import residual

RUN = "0123456789abcdef"


@pytest.fixture
def packing(tmp_path: Path) -> Packing:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return Packing(run=RUN, scratch=scratch)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "net.onnx"
    onnx.save(residual(), str(path))
    return path


def with_board() -> dict[str, Any]:
    """Return the commands that take place on a board, doctor apart, which has no options."""
    every = every_command()
    return {
        name: command
        for name, command in every.items()
        if name != "doctor" and any(each.name == "on" for each in command.params)
    }


def test_which_commands_take_place_on_boards() -> None:
    assert set(with_board()) == {"device detect", "profile", "tune", "run", "device bench"}


def test_words_are_those_of_the_options() -> None:
    """A parameter is said by its own option, and every path among them is taken along or brought back."""
    for command in with_board().values():
        for parameter in command.params:
            if parameter.param_type_name == "argument" or parameter.name in ("on", "quiet", "color", "json"):
                continue
            (word, *_) = module._option(parameter.name, "text", "text")
            assert word.removesuffix("=text") in parameter.opts, (command.name, parameter.name)
            if "Path" in str(command.callback.__annotations__[parameter.name]):
                known = {*module._PACKED, "store"}
                assert parameter.name in known, (command.name, parameter.name)


def test_a_model_is_taken_along_with_its_weights(packing: Packing, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    path = tmp_path / "net.onnx"
    onnx.save(residual(), str(path), save_as_external_data=True, location="w.bin", size_threshold=0)
    words = packing.words("device bench", {"model": str(path), "seconds": 0.5})
    (group,) = packing.groups
    assert [file.name for file in group.listed] == ["net.onnx", "w.bin"]
    assert words == ["device", "bench", "--seconds=0.5", "--", f"{group.place}/net.onnx"]


def test_weights_outside_of_the_folder_of_a_model_stay_here(packing: Packing, tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    onnx.save(residual(), str(path), save_as_external_data=True, location="w.bin", size_threshold=0)
    hostile = onnx.load(str(path), load_external_data=False)
    for tensor in hostile.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = "../../etc/passwd"
    onnx.save(hostile, str(path))
    with pytest.raises(InvalidInputError, match="not inside the folder"):
        packing.words("profile", {"models": [str(path)], "out": tmp_path / "out"})


def test_names_and_python_files(packing: Packing, tmp_path: Path, model: Path) -> None:
    code = tmp_path / "my engine.py"
    code.write_text("class Engine: ...\n")
    options = {"models": [f"mine={model}", f"{code}:P", "squeezenet"], "engine": f"{code}:Engine", "out": "o"}
    words = packing.words("profile", options)
    there, source = (group.place for group in packing.groups)
    assert words == [
        "profile",
        f"--out=runs/{RUN}",
        f"--engine={source}/my engine.py:Engine",
        "--",
        f"mine={there}/net.onnx",
        f"{source}/my engine.py:P",
        "squeezenet",
    ]
    assert packing.printed[f"runs/{RUN}"] == "o"


def test_pipelines_take_along_the_models_that_they_name(
    packing: Packing, tmp_path: Path, model: Path
) -> None:
    (tmp_path / "deep").mkdir()
    deep, outside = tmp_path / "deep" / "net.onnx", tmp_path / "deep" / "chain.py"
    onnx.save(residual(), str(deep), save_as_external_data=True, location="w.bin", size_threshold=0)
    chain = tmp_path / "chain.py"
    chain.write_text("import nowhere\nA, B, C = 'net.onnx', 'deep/net.onnx', 'lost.onnx'\n")
    outside.write_text(f"A, B = '../net.onnx', {str(model)!r}\n")
    packing.words("profile", {"models": [f"{chain}:P", f"{outside}:P"], "out": tmp_path / "out"})
    names = [[file.name for file, _ in group.files] for group in packing.groups]
    assert names == [["chain.py", "net.onnx", "deep/net.onnx", "deep/w.bin"], ["chain.py"]]


def test_python_files_take_along_what_they_import(packing: Packing, tmp_path: Path) -> None:
    sources = {
        "rules.py": "import helper, os\nfrom shapes.round import circle\n",
        "helper.py": "import rules, third",
        "third.py": "def (",
        "unrelated.py": "",
        "shapes/__init__.py": "",
        "shapes/round.py": "from . import flat",
        "shapes/flat.py": "",
    }
    for name, text in sources.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    packing.words("tune", {"subjects": ["squeezenet"], "rules": tmp_path / "rules.py", "out": "o"})
    (group,) = packing.groups
    assert {file.name for file in group.listed} == set(sources) - {"unrelated.py"}


def test_values_are_not_taken_for_options(packing: Packing, tmp_path: Path) -> None:
    path = tmp_path / "--json"
    path.write_text("{}")
    words = packing.words(
        "tune", {"subjects": ["--version"], "objective": "--out=x", "rules": path, "out": "o"}
    )
    assert words[-2:] == ["--", "--version"]
    assert "--objective=--out=x" in words
    assert f"--rules={packing.groups[0].place}/--json" in words


def test_flags_and_lists(packing: Packing) -> None:
    options = {
        "check": False,
        "restart": True,
        "materialize": False,
        "units": ("a", "b"),
        "shape": {"x": (1, 3)},
    }
    words = packing.words("tune", {**options, "out": "o", "resume": True, "overwrite": True})
    assert words[2:] == ["--no-check", "--restart", "--units=a,b", "--shape=x=1,3", "--resume"]


def test_a_problem_takes_its_model_along(packing: Packing, tmp_path: Path, model: Path) -> None:
    problem = load_problem("pixel7a/octree")
    network = open_model(model).network
    assert network.models[0].locator == str(model)
    costs = {layer.name: [1, 2] for layer in network.layers}
    table = table_problem(costs, ["a", "b"], network=network.name)
    found = type(table)(platform=table.platform, networks=(network,), costs=table.costs)
    path = tmp_path / "problem.json"
    path.write_text(dump_problem(found))
    words = packing.words("tune", {"subjects": [str(path)], "out": "o"})
    taken, written = packing.groups
    assert words[-1] == f"{written.place}/problem.json"
    there = read_problem(written.files[0][1])
    assert there.networks[0].models[0].locator == f"{taken.place}/net.onnx"
    assert packing.problem(problem, called="it").endswith("/problem.json")  # a table needs no model


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"store": Path("s")}, "--store"),
        ({"engine": "simulated"}, "simulated device needs no board"),
        ({"local": "2"}, "one board"),
    ],
)
def test_what_makes_no_sense_on_a_board(packing: Packing, options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        packing.words("tune", {"subjects": ["squeezenet"], "out": "o", **options})


def test_results_come_back_under_names_of_their_options(packing: Packing) -> None:
    words = packing.words("device detect", {"out": Path("here/x.json")})
    assert words == ["device", "detect", f"--out=runs/{RUN}/out.json"]
    assert packing.results == {"out.json": Path("here/x.json")}


def test_a_file_that_is_not_there(packing: Packing, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"rules\.py"):
        packing.words("tune", {"rules": tmp_path / "rules.py", "out": "o"})
