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
COMMANDS = re.findall(r"^\$ gapless ([^#\n]+)", README, re.MULTILINE)


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


@pytest.mark.parametrize("command", COMMANDS)
def test_the_commands_work(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my_rules.py").write_text("def rule(view):\n    return view.uses('GPU')\n")
    if "plan.json" in command and "--out" not in command:
        assert main(["plan", "pixel7a/alexnet-sparse", "--out", "plan.json"]) == 0
    assert main(shlex.split(command)) == 0
    assert capsys.readouterr().out


def test_every_backend_is_named() -> None:
    for name in backend_names():
        assert f"`{name}`" in README


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert target.startswith("http") or (ROOT / target).exists(), target
