"""The architecture, held by tests: who imports whom, where third-party code lives, how large things are."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("formulations", "solvers", "executor", "profiler", "gapless")
MAY_IMPORT = {
    "formulations": set(),
    "solvers": {"formulations"},
    "executor": {"formulations"},
    "profiler": {"formulations", "executor"},
    "gapless": {"formulations", "solvers", "executor", "profiler", "gapless"},
}
ONLY_IN = {
    "z3": {"solvers/exact/z3.py", "solvers/chunking/z3_paper.py"},
    "ortools": {"solvers/exact/cp_sat.py"},
    "pulp": {"solvers/exact/pulp.py"},
    "highspy": {"solvers/exact/pulp.py"},
    "scipy": {"solvers/flow_shop/assignment.py", "profiler/applications/convolutions.py"},
    "MNN": {"executor/engines/mnn_session.py", "executor/export/sessions.py"},
    "_tools": {"executor/engines/mnn_converter.py"},
    "onnxruntime": {"executor/engines/ort_session.py", "executor/export/sessions.py"},
    "onnx": {"executor/graph", "profiler/zoo"},
    "onnxslim": {"executor/graph/simplify.py"},
    "spox": {"profiler/zoo"},
    "sqlite3": {"executor/tuning"},
    "jinja2": {"gapless/view/page"},
    "matplotlib": {"gapless/view/plots"},
    "pydantic": {"formulations/json_files.py"},
    "typer": {"gapless"},
    "rich": {"gapless"},
}
NOT_IN_FORMULATIONS = {"numpy", "scipy", "onnx", "networkx"}
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60


def sources(*folders: str) -> list[Path]:
    """Return the Python files of top folders, each once: links inside `gapless` are not followed."""
    return [
        path
        for folder in folders or FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        if not any((ROOT / part).is_symlink() for part in path.relative_to(ROOT).parents)
    ]


def imports(path: Path) -> Iterator[tuple[int, str, list[str]]]:
    """Yield (level, module, names) of each import statement, at any depth."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield 0, alias.name, []
        elif isinstance(node, ast.ImportFrom):
            yield node.level, node.module or "", [alias.name for alias in node.names]


def folder_imports(path: Path) -> Iterator[str]:
    """Yield the top folders that a file imports from."""
    inside = path.relative_to(ROOT).parts
    for level, module, names in imports(path):
        parts = module.split(".")
        if level == 0:
            if parts[0] == "gapless":
                yield parts[1] if len(parts) > 1 else "gapless"
            elif parts[0] in FOLDERS:
                yield f"absolute {parts[0]}"
        elif level == len(inside) and inside[0] != "gapless":
            yield from [parts[0]] if module else names
        elif level == len(inside) - 1 and inside[0] == "gapless":
            yield parts[0] if parts[0] in FOLDERS else "gapless"


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_downwards(path: Path) -> None:
    folder = path.relative_to(ROOT).parts[0]
    assert set(folder_imports(path)) - {folder} <= MAY_IMPORT[folder]


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_third_party_code_has_one_home(path: Path) -> None:
    where = path.relative_to(ROOT)
    for level, module, _ in imports(path):
        top = module.split(".")[0]
        if level == 0 and top in ONLY_IN:
            assert {str(where), *map(str, where.parents)} & ONLY_IN[top], f"{where} imports {top}"
        if level == 0 and where.parts[0] == "formulations":
            assert top not in NOT_IN_FORMULATIONS


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Yield (name, lines without the docstring) of each function."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            lines = node.end_lineno - node.lineno + 1
            if ast.get_docstring(node) is not None:
                docstring = node.body[0]
                assert docstring.end_lineno is not None
                lines -= docstring.end_lineno - docstring.lineno + 1
            yield node.name, lines


@pytest.mark.parametrize(
    "path", sources(*FOLDERS, "tests", "benchmarks"), ids=lambda path: str(path.relative_to(ROOT))
)
def test_files_and_functions_stay_small(path: Path) -> None:
    assert path.read_text().count("\n") <= MAX_FILE_LINES
    assert [(name, lines) for name, lines in functions(path) if lines > MAX_FUNCTION_LINES] == []


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_public_name_is_documented(path: Path) -> None:
    tree = ast.parse(path.read_text())
    missing = [] if ast.get_docstring(tree) else ["the module"]
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            if ast.get_docstring(node) is None:
                missing.append(node.name)
    assert missing == []


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_is_pickled_or_run_through_a_shell(path: Path) -> None:
    modules = {module.split(".")[0] for level, module, _ in imports(path) if level == 0}
    assert modules.isdisjoint({"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"})
    assert "shell=True" not in path.read_text()


def test_the_package_list_equals_the_folders() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    expected = set()
    for path in sources():
        if path.name == "__init__.py":
            dotted = ".".join(path.relative_to(ROOT).parent.parts)
            expected.add(dotted if dotted.startswith("gapless") else f"gapless.{dotted}")
    assert set(config["packages"]) == expected
    for package, folder in config["package-dir"].items():
        assert (ROOT / folder / "__init__.py").is_file(), package


@pytest.mark.parametrize("folder", FOLDERS[:4])
def test_the_links_make_one_import_name(folder: str) -> None:
    link = ROOT / "gapless" / folder
    assert link.is_symlink()
    assert link.resolve() == ROOT / folder


def test_importing_gapless_loads_nothing_heavy() -> None:
    code = (
        "import sys, gapless; "
        "heavy = {'numpy', 'onnx', 'onnxruntime', 'onnxslim', 'pydantic', 'typer', 'rich', 'scipy', 'spox', "
        "'z3', 'ortools', 'pulp', 'MNN'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
