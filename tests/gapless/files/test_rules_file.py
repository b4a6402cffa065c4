"""Rules files are executed like every other file of the user."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FunctionType

import pytest

from gapless.files.rules_file import load_rules
from gapless.formulations.errors import InvalidInputError

RULES = """
import dataclasses
import gapless_test_units as units

print("loaded")

@dataclasses.dataclass
class Wanted:
    unit: str = units.BIG

def on_big(view):
    return view.uses(Wanted().unit)
"""


def test_a_rules_file_may_import_what_lies_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gapless_test_units.py").write_text("BIG = 'Big'\n")
    (tmp_path / "rules.py").write_text(RULES)
    (rule,) = load_rules(tmp_path / "rules.py")
    assert isinstance(rule, FunctionType)
    assert rule.__name__ == "on_big"
    assert capsys.readouterr() == ("", "loaded\n")
    assert "gapless_test_units" not in sys.modules
    assert not [path for path in sys.path if path.startswith(str(tmp_path))]


def test_a_rules_file_that_fails_says_where_and_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "rules.py").write_text("LITTLE = 'Little'\nprint(LITLE)\n")
    before = set(sys.modules)
    with pytest.raises(InvalidInputError, match=r"rules\.py, line 2: NameError: .*; did you mean LITTLE\?"):
        load_rules(tmp_path / "rules.py")
    assert set(sys.modules) == before
