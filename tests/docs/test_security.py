"""What SECURITY.md names is there: options, exit codes, metrics."""

from __future__ import annotations

import re

from gapless.cli.base.exits import ExitCode
from gapless.cli.base.general_options import TRUST, WORDS
from gapless.cli.main import every_command
from gapless.question.subjects import OPEN_SECONDS

from ..documents import ROOT

TEXT = (ROOT / "SECURITY.md").read_text()

OF_DOCKER = {
    "--cap-drop",
    "--env",
    "--memory",
    "--pids-limit",
    "--publish",
    "--read-only",
    "--security-opt",
    "--tmpfs",
    "--user",
    "--volume",
}


def test_its_options_are_options_of_a_command() -> None:
    known = {
        option
        for command in every_command().values()
        for parameter in command.params
        for option in parameter.opts
    }
    known |= {*WORDS, TRUST, OPEN_SECONDS.option}  # every command takes these
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", TEXT))
    assert {"--token-file", "--admin-token-file", "--trust", "--open-seconds"} <= named
    assert named - OF_DOCKER <= known


def test_its_exit_codes_and_metrics_are_those_of_the_program() -> None:
    assert "exit code 2" in TEXT
    assert int(ExitCode.USAGE) == 2
    assert "Exit code 7 says that no unit was left" in TEXT
    assert int(ExitCode.NOTHING_LEFT) == 7
    assert "gapless_unit_losses_total" in (ROOT / "gapless" / "serving" / "metrics.py").read_text()
