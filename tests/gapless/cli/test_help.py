"""Help: every command is in its place, says what it takes, and shows examples that work."""

from __future__ import annotations

import inspect
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from gapless.cli.base import catalog
from gapless.cli.base.answer import EXAMPLES, outline
from gapless.cli.base.catalog import COMMANDS, GROUPS, RENAMED
from gapless.cli.base.help import brief
from gapless.cli.main import every_command, main

from ..conftest import Cli
from .test_clusters import pipeedge_files

NOT_RUN = {
    "gapless tune squeezenet": "measures this machine for a minute",
    "gapless profile": "measures this machine, or a file of the user",
    "gapless run": "needs a problem that was measured here",
    "gapless export": "needs a problem that was measured here",
    "gapless costs interference squeezenet": "measures this machine for long",
    "gapless costs contention": "measures this machine for long",
    "gapless device bench": "needs an engine",
    "gapless device links": "measures a cluster for minutes",
    "gapless device describe": "needs an engine",
    "gapless costs predict": "needs a device that was described",
    "gapless costs learn": "measures this machine for long",
}
"""Examples whose words are only checked, and why."""

HOW_LONG = {"requests coordinate": ("--seconds", "2s")}
"""For how long commands simulate here that simulate a minute otherwise."""

catalog.load()
ALL_EXAMPLES = [example for name in COMMANDS for example in EXAMPLES[name]]


@pytest.fixture(scope="module")
def every() -> dict[str, Any]:
    return every_command()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One folder for all examples: what one writes, a later one reads."""
    place = tmp_path_factory.mktemp("examples")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.setenv("COLUMNS", "100")
        for name, text in pipeedge_files().items():
            Path(name).write_text(text)
        Path("boards.json").write_text(
            '{"format": "gapless.sweep", "version": 1, "models": ["octree"], '
            '"platforms": ["pixel7a", "oneplus11"]}'
        )
        yield place


def words_of(example: str) -> list[str]:
    program, *words = shlex.split(example.partition(" > ")[0], comments=True)
    assert program == "gapless"
    return words


def test_the_catalog_is_what_the_modules_register(every: dict[str, Any]) -> None:
    assert sorted(every) == sorted(COMMANDS)
    assert list(every) == list(COMMANDS), "help is in the order of the catalog"
    modules = {name: inspect.unwrap(command.callback).__module__ for name, command in every.items()}
    assert {name: module.rpartition(".")[2] for name, module in modules.items()} == COMMANDS


def test_every_command_has_an_example_of_itself() -> None:
    for name, examples in EXAMPLES.items():
        assert examples, name
        assert {catalog.called(words_of(example)) for example in examples} == {name}
        assert all(len(example) <= 92 for example in examples), "one line on most terminals"


@pytest.mark.slow
def test_every_example_works(folder: Path, every: dict[str, Any]) -> None:
    for example in ALL_EXAMPLES:  # in their order, in one process: some read what earlier ones have written
        said = words_of(example)
        name = catalog.called(said)
        words = said[len(name.split()) :]
        every[name].make_context(name, [word for word in words if word not in ("--json", "--quiet")])
        if not any(example.startswith(begun) for begun in NOT_RUN):
            assert main([*said, *HOW_LONG.get(name, ())]) == 0, example


def test_every_reason_not_to_run_an_example_is_needed() -> None:
    assert [begun for begun in NOT_RUN if not any(each.startswith(begun) for each in ALL_EXAMPLES)] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command(cli: Cli, name: str) -> None:
    said = name.split()
    run, whole = cli(*said, "--help"), cli(*said, "--help-all")
    assert (run.code, run.err, whole.code, whole.err) == (0, "", 0, "")
    for shown in (run.out, whole.out):
        for words in ("--json", "--quiet", "--no-color", "Example"):
            assert words in shown
        for example in EXAMPLES[name]:
            assert " ".join(f"$ {example}".split()) in " ".join(shown.split())
    assert cli(*said, "-h").out == cli("help", *said).out == run.out
    assert run.out.index("Example") < 400, "help opens with examples"


@pytest.mark.parametrize("name", COMMANDS)
def test_help_names_every_option_and_fits_a_screen_or_little_more(
    cli: Cli, name: str, every: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = cli(*name.split(), "--help").out
    assert len(shown.splitlines()) <= 60
    for param in every[name].params:
        assert getattr(param, "hidden", False) or param.opts[0] in shown or param.metavar in shown
    assert f"gapless {name} --help-all" in shown


def test_the_beginning_of_a_help_text_is_a_whole_thought() -> None:
    assert (
        brief("Requests that share the units: networks with counts.", 40) == "Requests that share the units"
    )
    assert brief("Most chunks. A second sentence that is long.", 30) == "Most chunks"
    assert (
        brief("With --platform and an ONNX file: fixed shape of an input.", 40) == "Fixed shape of an input"
    )
    assert brief("How many devices of a type of the cluster there are", 30) == "How many devices of a ..."


def test_a_command_that_was_asked_alone_has_its_usual_help(cli: Cli) -> None:
    from gapless.cli import main

    main._group.cache_clear()
    cache = main.every_command()["tools cache"]
    cache.get_help(cache.context_class(cache, info_name="cache"))
    assert "-h" in cli("tools", "cache", "--help-all").out.split()


def test_the_help_of_all(cli: Cli) -> None:
    run = cli("--help")
    assert cli().out == cli("-h").out == cli("help").out == run.out
    panels = list(catalog.PANELS)
    places = [run.out.index(f" {panel} ") for panel in panels]
    assert places == sorted(places)
    assert "Exit codes" in run.out
    assert catalog.OTHER not in panels


def test_general_options_may_stand_before_the_command_and_after_it(cli: Cli) -> None:
    after = cli("tools", "version", "--json")
    assert after.document["format"] == "gapless.version"
    assert cli("--json", "tools", "version").out == cli("tools", "--json", "version").out == after.out
    assert cli("--json", "plan", "nowhere").document["exit_code"] == 2
    assert cli("--quiet", "--json", "--no-color", "tools", "version").out == after.out


def test_quiet_leaves_answers_and_errors(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "problem.json"
    run = cli("show", "pixel7a/octree", "--out", out, "--quiet")
    assert (run.code, run.err) == (0, "")
    assert "octree" in run.out
    assert out.exists()
    assert cli("plan", "nowhere", "--quiet").err.startswith("error: 'nowhere'")


def test_what_follows_two_dashes_is_no_option(cli: Cli) -> None:
    run = cli("tools", "inspect", "--", "--json")
    assert run.err.startswith("error: '--json' is neither a file nor a built-in network")


def test_a_command_loads_only_its_module(monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    loaded: list[str] = []
    monkeypatch.setattr(catalog, "import_module", lambda name, package: loaded.append(name))
    catalog.load(["plan", "compare", "tune"])
    assert loaded == ["..commands.planning", "..commands.tuning"]
    catalog.load()
    assert len(set(loaded)) == len(set(COMMANDS.values()))


@pytest.mark.slow
@pytest.mark.parametrize("words", [(), ("--help",), ("-h",), ("help",), ("--version",)])
def test_what_is_said_about_all_commands_loads_none(words: tuple[str, ...]) -> None:
    script = f"""
import sys
from gapless.cli.main import main
code = main({list(words)!r})
print([name for name in sys.modules if name.startswith("gapless.cli.commands.")], code)
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.endswith("[] 0\n")


def test_the_list_of_commands_is_that_of_the_commands(cli: Cli, every: dict[str, Any]) -> None:
    listed: dict[str, Any] = vars(typer.main.get_command(outline()))["commands"]
    assert list(listed) == [*(name for name in every if " " not in name), *GROUPS]
    listed |= {f"{group} {name}": one for group in GROUPS for name, one in listed[group].commands.items()}
    for name, command in every.items():
        assert listed[name].get_short_help_str(200) == command.get_short_help_str(200)
        assert listed[name].rich_help_panel == command.rich_help_panel


def test_summaries_are_read_without_loading_modules(every: dict[str, Any]) -> None:
    assert {name: catalog.summary(name) for name in COMMANDS} == {
        name: (inspect.getdoc(command.callback) or "").split("\n")[0] for name, command in every.items()
    }


@pytest.mark.parametrize("name", list(COMMANDS))
def test_help_cuts_nothing_at_80_columns(cli: Cli, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 80, raising=False)
    shown = cli(*name.split(), "--help-all").out
    assert max(map(len, shown.splitlines())) <= 80
    assert "\N{HORIZONTAL ELLIPSIS}" not in shown


def test_an_option_is_known_by_its_old_name_too(cli: Cli) -> None:
    """Nobody sees `--no-check` in the help, and scripts that say it work as before."""
    assert "--no-check" not in cli("run", "--help").out
    old, new, wrong = (
        cli("run", "nowhere.json", word) for word in ("--no-check", "--unchecked", "--no-chek")
    )
    assert "option" not in new.err
    assert (old.code, old.err) == (new.code, new.err)
    assert "--no-chek" in wrong.err


def test_a_group_shows_its_commands(cli: Cli) -> None:
    run = cli("device")
    assert run.out == cli("device", "--help").out == cli("help", "device").out
    for word in ("detect", "describe", "bench", "links"):
        assert f" {word} " in run.out
    assert (run.code, run.err) == (0, "")
    wrong = cli("device", "benhc")
    assert (wrong.code, "did you mean device bench" in wrong.err) == (2, True)


@pytest.mark.parametrize("old", RENAMED)
def test_old_names_say_the_new_one(cli: Cli, old: str) -> None:
    run = cli(old, "--json", "x")
    assert run.code == 2
    assert f"it is now `gapless {RENAMED[old][0]}`" in run.document["message"]
    assert {*RENAMED[old]} <= {*COMMANDS}
    assert old not in COMMANDS


def test_commands_about_plans_only_name_the_options_of_problems(cli: Cli) -> None:
    for command in ("simulate", "explain", "show", "tools check"):
        shown = cli(command, "--help").out
        assert "What is asked, as for `gapless plan`" in shown
        assert "  --window" in shown
        assert len(shown.splitlines()) <= 35
        assert "When a request of a workload comes" in cli(command, "--help-all").out
    assert "When a request of a workload comes" in cli("plan", "--help").out


def test_what_is_rare_in_one_command_has_its_line_in_another(cli: Cli, every: dict[str, Any]) -> None:
    rows = [line.split()[0] for line in cli("serve", "--help").out.splitlines() if line.strip()]
    assert "--state" in rows, "it is rare in plan, which is loaded, too"
    assert "--state" not in [
        line.split()[0] for line in cli("plan", "--help").out.splitlines() if line.strip()
    ]
