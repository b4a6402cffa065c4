from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx
import pytest

import gapless
from gapless.api.models import open_model
from gapless.api.problems import load_problem, table_problem
from gapless.boards import packing as module
from gapless.boards.board import (
    OPTIONS,
    BenchOptions,
    DeviceOptions,
    ProfileOptions,
    RunOptions,
    TuneOptions,
)
from gapless.boards.packing import Packing
from gapless.cli.main import every_command
from gapless.cli.options.cluster import ClusterChoice
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.files import dump_problem
from gapless.formulations.files import load_problem as read_problem
from gapless.formulations.limits import LIMITS
from gapless.formulations.operation import operation_of
from gapless.question.fields import Given, given, said
from gapless.question.subjects import Folder, Machine, Race
from gapless.question.values import Names, file_form
from tests.executor.graph.models import residual

RUN = "0123456789abcdef"
OUT = said("Where the result goes.", file_form(names=Names.RESULT), name="out")


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


WORDS_OF = {
    "device detect": DeviceOptions,
    "device bench": BenchOptions,
    "profile": ProfileOptions,
    "tune": TuneOptions,
    "run": RunOptions,
}
ONLY_HERE = {
    "--local", "--address", "--allow-no-token", "--cluster",  # of clusters
    "--truth", "--noise", "--store",  # of this machine
    "--plan", "--at",  # plan and models are found here
    "--details",  # what is printed
    "--out", "--resume", "--overwrite",  # of the run, by parameters of their own
    "--on", "--quiet", "--color", "--no-color", "--json", "--open-seconds",
}  # fmt: skip


def test_boards_take_the_words_of_the_commands() -> None:
    """Options of the command line, fields and the types of Python's words are the same ones."""
    assert set(OPTIONS) == set(with_board()) == set(WORDS_OF)
    for name, command in with_board().items():
        options = {
            word for each in command.params if each.param_type_name == "option" for word in each.opts[:1]
        }
        said = {"--check" if each.flag is False else each.option for each in OPTIONS[name]}
        assert options - said <= ONLY_HERE, name
        assert said - options <= {"--store", "--truth", "--noise"}, name
        words = set(WORDS_OF[name].__annotations__)
        fields = (
            {each.name for each in OPTIONS[name]} - set(LIMITS) - {"store", "truth", "noise_permille", "at"}
        )
        assert words - {"limits"} == fields, name
        assert ("limits" in words) == (name == "tune")


def test_every_path_is_taken_along_or_brought_back() -> None:
    for fields in OPTIONS.values():
        for each in fields:
            if each.form.metavar in ("FILE", "FILE|FOLDER", "PATH"):
                assert each.form.names in module._TAKEN, each.name


def test_a_word_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="'budgett' cannot be said here; did you mean budget_s"):
        given(OPTIONS["tune"], {"budgett": 1})
    with pytest.raises(InvalidInputError, match="budget_s is 'soon', must be a time with its unit"):
        given(OPTIONS["tune"], {"budget_s": "soon"})


def test_values_keep_their_units(packing: Packing) -> None:
    options = {"budget_s": 1.5, "sustain_s": "20min", "time_limit_s": 2, "max_memory_bytes": 2**31}
    words = packed(packing, "tune", ["squeezenet"], **options)
    assert {"--budget=1500ms", "--sustain=20min", "--time-limit=2s", "--max-memory=2GiB"} < set(words)


def packed(packing: Packing, command: str, subjects: Sequence[Any] = (), **options: Any) -> list[str]:
    """Return the words of a command for a board, as Python says them."""
    folder = Folder(out=Path(options.pop("out", "o")), resume=options.pop("resume", False))
    return packing.words(
        command,
        given([*OPTIONS[command], OUT], options),
        subjects,
        folder if command in ("tune", "profile") else None,
    )


def test_a_model_is_taken_along_with_its_weights(packing: Packing, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    path = tmp_path / "net.onnx"
    onnx.save(residual(), str(path), save_as_external_data=True, location="w.bin", size_threshold=0)
    words = packed(packing, "device bench", [str(path)], seconds=0.5)
    (group,) = packing.groups
    assert [file.name for file in group.listed] == ["net.onnx", "w.bin"]
    assert words == ["device", "bench", "--seconds=500ms", "--", f"{group.place}/net.onnx"]


def test_weights_that_are_links_are_taken_along_where_that_is_asked_for(
    packing: Packing, tmp_path: Path
) -> None:
    path = tmp_path / "net.onnx"
    onnx.save(residual(), str(path), save_as_external_data=True, location="w.bin", size_threshold=0)
    (tmp_path / "w.bin").rename(tmp_path / "cached")
    (tmp_path / "w.bin").symlink_to("cached")
    with pytest.raises(InvalidInputError, match="--materialize"):
        packed(packing, "profile", [str(path)])
    words = packed(packing, "profile", [str(path)], materialize=True)
    assert "--materialize" in words
    assert [file.name for file in packing.groups[-1].listed] == ["net.onnx", "w.bin"]


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
        packed(packing, "profile", [str(path)])


def test_names_and_python_files(packing: Packing, tmp_path: Path, model: Path) -> None:
    code = tmp_path / "my engine.py"
    code.write_text("class Engine: ...\n")
    models = [f"mine={model}", f"{code}:P", "squeezenet"]
    words = packed(packing, "profile", models, engine=f"{code}:Engine")
    source, there = (group.place for group in packing.groups)
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
    packed(packing, "profile", [f"{chain}:P", f"{outside}:P"])
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
    packed(packing, "tune", ["squeezenet"], rules=tmp_path / "rules.py")
    (group,) = packing.groups
    assert {file.name for file in group.listed} == set(sources) - {"unrelated.py"}


def test_values_are_not_taken_for_options(packing: Packing, tmp_path: Path) -> None:
    path = tmp_path / "--json"
    path.write_text("{}")
    words = packed(packing, "tune", ["--version"], objective="--out=x", rules=path)
    assert words[-2:] == ["--", "--version"]
    assert "--objective=--out=x" in words
    assert f"--rules={packing.groups[0].place}/--json" in words


def test_flags_and_lists(packing: Packing) -> None:
    problem = load_problem("pixel7a/octree")
    plan = gapless.plan(problem).plan
    assert plan is not None
    deployed = operation_of(problem).deploy(problem, plan)
    ran = packed(
        packing, "run", [problem, deployed], check=False, restart=True, input_range=["a=0:1", "b=1:2"]
    )
    assert ran[1:5] == ["--unchecked", "--restart", "--input-range=a=0:1", "--input-range=b=1:2"]
    words = packed(
        packing,
        "tune",
        materialize=False,
        units=("a", "b"),
        shape={"x": (1, 3)},
        emulate={"a": 500},
        resume=True,
    )
    assert words[2:] == ["--resume", "--units=a,b", "--shape=x=1,3", "--emulate=a=50%"]


def test_a_problem_takes_its_model_along(packing: Packing, tmp_path: Path, model: Path) -> None:
    problem = load_problem("pixel7a/octree")
    network = open_model(model).network
    assert network.models[0].locator == str(model)
    costs = {layer.name: [1, 2] for layer in network.layers}
    table = table_problem(costs, ["a", "b"], network=network.name)
    found = type(table)(platform=table.platform, networks=(network,), costs=table.costs)
    path = tmp_path / "problem.json"
    path.write_text(dump_problem(found))
    words = packed(packing, "tune", [str(path)])
    taken, written = packing.groups
    assert words[-1] == f"{written.place}/problem.json"
    there = read_problem(written.files[0][1])
    assert there.networks[0].models[0].locator == f"{taken.place}/net.onnx"
    assert packing.problem(problem, called="it").endswith("/problem.json")  # a table needs no model


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([(Race.field_named("store"), Path("s"))], "--store"),
        ([(Machine.field_named("engine"), "simulated")], "simulated device needs no board"),
        ([(ClusterChoice.field_named("local"), "2")], "one board"),
    ],
)
def test_what_makes_no_sense_on_a_board(packing: Packing, options: list[Given], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        packing.words("tune", options, ["squeezenet"], Folder())


def test_results_come_back_under_names_of_their_options(packing: Packing) -> None:
    words = packing.words("device detect", [(OUT, Path("here/x.json"))])
    assert words == ["device", "detect", f"--out=runs/{RUN}/out.json"]
    assert packing.results == {"out.json": Path("here/x.json")}


def test_a_file_that_is_not_there(packing: Packing, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"rules\.py"):
        packed(packing, "tune", rules=tmp_path / "rules.py")
