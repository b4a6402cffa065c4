"""Comparisons that are read again."""

from __future__ import annotations

import json
from pathlib import Path

import gapless
from gapless.answers.comparing import answer_of
from gapless.files.comparison_file import load_comparison
from gapless.files.documents import comparison_document, json_text
from gapless.formulations.schedules import as_schedules
from gapless.solvers.registry import support_of
from tests.workload_instances import workload_problem


def test_classes_of_backends_are_known_of_older_files_which_do_not_name_them(tmp_path: Path) -> None:
    """A file that says that a backend looks at all plans is believed."""
    problem = as_schedules(workload_problem({"a": [[10, 30], [None, 20]], "b": [[25, 26]]}, ["a", "b"]))
    document = json.loads(
        json_text(comparison_document(gapless.compare(problem, backends=["band", "serial"])))
    )
    band, serial = document["results"]
    del band["searches"]
    serial["searches"] = ""
    path = tmp_path / "answers.json"
    path.write_text(json.dumps(document))
    read, known = load_comparison(path), support_of("band", problem)
    assert known is not None
    assert "in one order" in known.searches
    assert [found.searches for found in read.answers(problem).results] == [known.searches, ""]
    assert [answer_of(found, problem).searches for found in read.results] == [known.searches, ""]
