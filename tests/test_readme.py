"""The README does what it says: its Python runs, its commands exist, its links lead somewhere."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from gapless.cli import main
from gapless.solvers.registry import backend_names

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
BLOCKS = [
    re.findall(r"^\$ gapless ([^#\n]+)", block, re.MULTILINE)
    for block in re.findall(r"```console\n(.*?)```", README, re.DOTALL)
]


def test_the_python_runs_and_prints_what_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    written = re.findall(r"print\(.*?\) +# (.*)", README)
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)
    printed = iter(capsys.readouterr().out.splitlines())
    assert len(written) >= 2
    for line in written:
        assert line in printed, f"{line!r} is not printed, or not in this order"


@pytest.mark.parametrize("commands", BLOCKS, ids=lambda commands: commands[0].split()[0])
def test_the_commands_work(
    commands: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my_rules.py").write_text("def rule(view):\n    return view.uses('GPU')\n")
    for command in commands:
        assert main(shlex.split(command)) == 0, command
        assert capsys.readouterr().out


def test_every_backend_is_named() -> None:
    for name in backend_names():
        assert f"`{name}`" in README


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert target.startswith("http") or (ROOT / target).exists(), target
