"""The runner as one file."""

from __future__ import annotations

import ast
import sys
from collections import Counter

from gapless.executor.export.folder import runner_source


def test_it_is_one_program_that_needs_only_numpy_and_an_engine() -> None:
    tree = ast.parse(runner_source())
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            found.add((node.module or "").partition(".")[0])
    assert found - sys.stdlib_module_names == {"numpy", "onnxruntime", "MNN"}


def test_its_parts_do_not_hide_each_other() -> None:
    tree = ast.parse(runner_source())
    names: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign):
            names += [target.id for target in node.targets if isinstance(target, ast.Name)]
    assert [name for name, count in Counter(names).items() if count > 1] == []
    docstring = ast.get_docstring(tree)
    assert docstring is not None
    assert docstring.startswith("Run what `gapless export` has written")
    assert runner_source().count("from __future__ import annotations") == 1
    assert runner_source() == runner_source()
