"""Shell completion, driven as shells do: through the environment, in this process and in real ones."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gapless.cli.base.catalog import COMMANDS, GROUPS
from gapless.cli.commands.completion import SCRIPTS, Shell
from gapless.cli.completion.completing import TEXT, VARIABLE
from gapless.cli.completion.values import VALUES, VALUES_OF_COMMAND
from gapless.cli.main import main
from gapless.profiler.platforms.catalog import shipped_names
from gapless.solvers.registry import backend_names

from ...conftest import Cli

Complete = Callable[..., list[str]]


@pytest.fixture
def bash(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Complete:
    """Complete a line as bash does, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def complete(line: str, point: int | None = None) -> list[str]:
        until = line if point is None else line[:point]
        with monkeypatch.context() as patch:
            patch.setenv(VARIABLE, "bash")
            patch.setenv("COMP_LINE", line)
            patch.setenv("COMP_POINT", str(len(until)))
            patch.setenv(TEXT, re.split(r"""(?<!\\)[ \t"'=:]""", until)[-1])
            assert main([]) == 0
        printed = capsys.readouterr()
        assert printed.err == ""
        return printed.out.splitlines()

    return complete


def test_commands(bash: Complete) -> None:
    assert bash("gapless ") == [*(name for name in COMMANDS if " " not in name), *GROUPS]
    assert bash("gapless pro") == bash("gapless --quiet pro") == ["profile"]
    assert bash("gapless device ") == ["detect", "describe", "bench", "links"]
    assert bash("gapless device be") == bash("gapless help device be") == ["bench"]
    assert bash("gapless help sim") == ["simulate"]
    assert bash("gapless plan pixel7a/octree", point=len("gapless pla")) == ["plan"]
    assert bash("gapless nonsense ") == []


def test_options(bash: Complete) -> None:
    assert bash("gapless --ver") == ["--version"]
    assert bash("gapless plan --back") == ["--backend"]
    assert bash("gapless plan --min-") == ["--min-units", "--min-balance", "--min-utilisation"]
    assert bash("gapless plan --min-units 2 --min-") == ["--min-balance", "--min-utilisation"]
    assert "--emulate" in bash("gapless tune --emulate core0=50% --emu")
    assert {"--json", "--quiet", "--color", "--no-color", "--help"} <= set(bash("gapless tools version --"))
    assert set(bash("gapless tools version ")) == set(bash("gapless tools version --"))


def test_names(bash: Complete) -> None:
    assert bash("gapless show ") == list(shipped_names())
    assert bash("gapless plan pixel7a/o") == ["pixel7a/octree"]
    assert bash("gapless plan 'pixel7a/o") == ["pixel7a/octree"]
    assert bash("gapless plan --backend ") == list(backend_names())
    assert bash("gapless plan --backend=cp") == ["cpsat"]
    assert bash("gapless plan --order ") == bash("gapless plan --order=") == ["free", "fixed"]
    assert bash("gapless tune --granularity bl") == ["block"]
    assert bash("gapless tune --engine si") == ["simulated"]
    assert bash("gapless tune squ") == ["squeezenet"]
    assert bash("gapless tune squeezenet mobilenetv3") == ["mobilenetv3-large"]
    assert bash("gapless costs interference pixel7a") == [
        "pixel7a", "pixel7a-tpu", *(n for n in shipped_names() if "pixel" in n)
    ]  # fmt: skip
    assert bash("gapless plan --platform kir") == ["kirin990"]
    assert bash("gapless plan --costs inter") == ["interpolated"]
    assert bash("gapless tools completion z") == ["zsh"]
    assert bash("gapless tools schema prob") == ["problem"]


def test_lists_between_commas(bash: Complete) -> None:
    assert bash("gapless compare --backends native,z3,z3-") == ["native,z3,z3-paper"]
    assert "native,z3" in bash("gapless compare --backends native,")
    assert "native,native" not in bash("gapless compare --backends native,")
    assert bash("gapless plan --objective period,gap") == ["period,gapness"]
    assert bash("gapless plan --workload yolov4,mob") == ["yolov4,mobilenetv2"]
    on_pixel = bash("gapless plan --platform pixel7a --workload alexnet-")
    assert on_pixel == ["alexnet-dense", "alexnet-sparse"]


def test_units_of_this_machine(bash: Complete) -> None:
    units = bash("gapless tune --units core")
    assert "core0" in units
    assert bash("gapless tune --emulate core0") == ["core0="]
    assert bash("gapless tune --units core0,core0") == []


@pytest.mark.slow
def test_files_that_fit(bash: Complete, tmp_path: Path) -> None:
    (tmp_path / "gapless-out").mkdir()
    for name in (
        "plan.json",
        "net.onnx",
        "my_rules.py",
        ".hidden.json",
        "gapless-out/plan.json",
        "größe.onnx",
    ):
        (tmp_path / name).write_text("")
    assert bash("gapless tools check ")[-2:] == ["gapless-out/", "plan.json"]
    assert bash("gapless tools check pl") == ["plan.json"]
    assert bash("gapless tools check gapless-out/") == ["gapless-out/plan.json"]
    assert bash("gapless run pixel7a/octree pl") == ["plan.json"]
    assert bash("gapless run pixel7a/octree pix") == []
    assert bash("gapless plan --rules ") == ["gapless-out/", "my_rules.py"]
    assert bash("gapless plan --backend my") == bash("gapless tune --engine my") == ["my_rules.py"]
    assert bash("gapless compare --backends native,my") == ["native,my_rules.py"]
    assert bash("gapless tools inspect ne") == ["net.onnx"]
    assert bash("gapless tools inspect gr") == ["größe.onnx"]
    assert bash("gapless show nowhere/") == []


HOSTILE = (
    "zz;touch PWN;#.onnx",
    "zz$(touch PWN)`touch PWN`.onnx",
    "zz'\";touch PWN&|>PWN<.onnx",
    "zz!\\ *?[a]{b,c}~^#.onnx",
)
"""Names of files that a shell takes for commands, or for names of other files."""


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("begun", ["zz", "'zz", '"zz', "mine=zz"])
def test_what_bash_inserts_means_the_name_of_the_file(
    bash: Complete, tmp_path: Path, name: str, begun: str
) -> None:
    (tmp_path / name).touch()
    if "=" in begun:  # names of models are not completed behind a name of one's own; those of options are
        begun, name, line = "zz", name.removesuffix(".onnx") + ".py", "gapless plan --rules="
        (tmp_path / name).touch()
    else:
        line = "gapless tools inspect "
    (inserted,) = bash(f"{line}{begun}")
    quote = begun[0] if begun[0] in "'\"" else ""
    said = subprocess.run(
        ["bash", "-c", f"printf %s {quote}{inserted}{quote}"], capture_output=True, text=True, check=True
    )
    assert said.stdout == name
    assert not (tmp_path / "PWN").exists()


def test_names_that_no_line_can_show_are_not_offered_and_none_is_an_option(
    bash: Complete, tmp_path: Path
) -> None:
    for name in ("zz\ntouch PWN\n.onnx", "zz\x1b[2K.onnx", "zz\u202ex.onnx", "--rules=zz.py", "~root.onnx"):
        (tmp_path / name).touch()
    assert [each for each in bash("gapless tools inspect ") if "zz" in each or "~" in each] == [
        "./--rules=zz.py",
        r"\~root.onnx",
    ]


@pytest.mark.parametrize(
    "line", ["gapless plan 'a \"b", "gapless plan \\", "", "gapless", "gapless  -", "gapless --"]
)
def test_half_a_line_is_no_error(bash: Complete, line: str) -> None:
    assert isinstance(bash(line), list)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_what_the_choices_mean(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], shell: str
) -> None:
    monkeypatch.setenv(VARIABLE, shell)
    assert main(["co"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "compare\tSolve a problem, or many, with several backends and compare what they find and prove, "
        "and how fast",
        "costs\tCosts that are predicted or learned, and how units slow each other down",
    ]
    assert main(["plan", "--order=f"]) == 0
    assert capsys.readouterr().out == "--order=free\t\n--order=fixed\t\n"
    assert main(["plan", "--top"]) == 0
    assert capsys.readouterr().out == "--top\tHow many of the best plans\n"


def test_every_parameter_that_takes_a_name_is_known() -> None:
    from gapless.cli.main import every_command

    found = every_command()
    names = {param.name for command in found.values() for param in command.params}
    assert set(VALUES) <= names, "a parameter has another name now"
    for command, parameter in VALUES_OF_COMMAND:
        assert parameter in {param.name for param in found[command].params}
    arguments = {p.name for c in found.values() for p in c.params if p.param_type_name == "argument"}
    assert arguments - set(VALUES) <= {"shell"}, "arguments that are completed with nothing"


@pytest.mark.parametrize("shell", Shell)
def test_the_scripts(cli: Cli, shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    run = cli("tools", "completion", shell)
    assert (run.code, run.out, run.err) == (0, SCRIPTS[shell], "")
    assert VARIABLE in run.out
    assert cli("tools", "completion", shell, "--json").document["script"] == run.out
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "20")
        assert main(["tools", "completion", shell]) == 0
    assert capsys.readouterr().out == run.out, "no line is broken"
    if shutil.which(shell):
        checked = subprocess.run([shell, "-n"], input=run.out, capture_output=True, text=True, check=False)
        assert (checked.returncode, checked.stderr) == (0, "")


@pytest.fixture
def program(tmp_path: Path) -> dict[str, str]:
    """An environment in which `gapless` is this Python's."""
    path = tmp_path / "bin"
    path.mkdir()
    (path / "gapless").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m gapless "$@"\n')
    (path / "gapless").chmod(0o755)
    return {**os.environ, "PATH": f"{path}{os.pathsep}{os.environ['PATH']}"}


BASH = """
source /dev/stdin
COMP_LINE="$1" COMP_POINT=${#1} COMP_WORDBREAKS=$' \\t\\n"\\'><=;|&(:'
_gapless_completion gapless "${1##*[ =]}"
printf '%s\\n' "${COMPREPLY[@]}"
complete -p gapless
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not here")
@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("gapless co", ["compare", "costs"]),
        ("gapless device li", ["links"]),
        ("gapless plan --order=fi", ["fixed"]),
        ("gapless plan pixel7a/alexnet-s", ["pixel7a/alexnet-sparse"]),
        ("gapless plan --objective latency,id", ["latency,idle"]),
    ],
)
def test_a_real_bash(program: dict[str, str], line: str, found: list[str]) -> None:
    run = subprocess.run(
        ["bash", "--norc", "-c", BASH, "bash", line],
        input=SCRIPTS[Shell.BASH],
        capture_output=True,
        text=True,
        env=program,
        check=True,
    )
    *words, registered = run.stdout.splitlines()
    assert words == found
    assert registered == "complete -o default -F _gapless_completion gapless"


KEYS = """
import os, pty, select, sys, time
pid, terminal = pty.fork()
if not pid:
    os.execvp("bash", ["bash", "--noprofile", "--rcfile", "rc", "-i"])
shown = b""
def until(wanted):
    global shown
    while wanted not in shown:
        assert select.select([terminal], [], [], 60)[0], shown
        shown += os.read(terminal, 4096)
    shown = b""
until(b"$ ")
os.write(terminal, b"gapless tools inspect zz")
until(b"zz")
os.write(terminal, b"\\t")
until(b".onnx")
os.write(terminal, b"\\n")
until(b"ran ")
os.kill(pid, 9)
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not here")
def test_tab_and_enter_run_nothing_that_a_file_name_says(tmp_path: Path, program: dict[str, str]) -> None:
    work, name = tmp_path / "work", HOSTILE[0]
    work.mkdir()
    (work / name).touch()
    (tmp_path / "bin" / "gapless").write_text(
        f'#!/bin/sh\n[ -n "${VARIABLE}" ] && exec "{sys.executable}" -m gapless "$@"\n'
        'printf "%s\\n" "$@" > ../said; echo "ran "\n'
    )
    (work / "rc").write_text(f"PS1='$ '\n{SCRIPTS[Shell.BASH]}")
    subprocess.run([sys.executable, "-c", KEYS], cwd=work, env={**program, "TERM": "dumb"}, check=True)
    assert (tmp_path / "said").read_text().splitlines() == ["tools", "inspect", name]
    assert {each.name for each in work.iterdir()} == {name, "rc"}


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not here")
def test_a_real_fish(program: dict[str, str]) -> None:
    run = subprocess.run(
        ["fish", "--no-config", "-c", "source; complete -C 'gapless co'"],
        input=SCRIPTS[Shell.FISH],
        capture_output=True,
        text=True,
        env=program,
        check=True,
    )
    assert [line.split("\t")[0] for line in run.stdout.splitlines()] == ["compare", "costs"]


def test_completion_loads_little(program: dict[str, str]) -> None:
    """What makes it slow is what it imports; no times are tested."""
    code = (
        "import sys, gapless.cli.main; gapless.cli.main.main(['plan', '--objective', 'per']); "
        "heavy = {'numpy', 'onnx', 'pydantic', 'z3', 'ortools', 'jinja2', 'matplotlib', 'MNN'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**program, VARIABLE: "zsh"},
        check=True,
    )
    assert run.stdout == "period\t\n[]\n"
