"""The architecture, held by tests: who imports whom, where third-party code lives, how large things are."""

from __future__ import annotations

import ast
import gc
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from gapless.formulations.registry import formulation_names

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
    "ortools": {"solvers/exact/cp_sat.py", "solvers/pieces/cpsat.py"},
    "pulp": {"solvers/exact/pulp.py"},
    "highspy": {"solvers/exact/pulp.py"},
    "scipy": {
        "profiler/applications/convolutions.py",
        "profiler/links/fitting.py",
        "profiler/learned/device.py",
    },
    "MNN": {"executor/engines/mnn_session.py", "executor/export/sessions.py"},
    "_tools": {"executor/engines/mnn_converter.py"},
    "onnxruntime": {"executor/engines/ort_session.py", "executor/export/sessions.py"},
    "openvino": {"executor/engines/openvino_session.py"},
    "onnx": {"executor/graph", "profiler/zoo", "profiler/learned/trees.py"},
    "torch": {"profiler/learned/transformer.py"},
    "lightgbm": {"profiler/learned/trees.py"},
    "onnxslim": {"executor/graph/simplify.py"},
    "spox": {"profiler/zoo"},
    "yaml": {"profiler/clusters/pipeedge.py"},
    "sqlite3": {"executor/tuning"},
    "pyarrow": {"gapless/sweeps/table.py"},
    "ray": {"executor/cluster", "gapless/sweeps/over_ray.py"},
    "uvicorn": {"gapless/serving"},
    "httptools": {"gapless/serving"},
    "grpc": {"gapless/serving"},
    "google": {"gapless/serving/wire.py", "gapless/serving/grpc_server.py"},
    "jinja2": {"gapless/view/page"},
    "matplotlib": {"gapless/view/plots"},
    "pydantic": {"formulations/json_files.py"},
    "typer": {"gapless"},
    "rich": {"gapless"},
}
NOT_IN_FORMULATIONS = {"numpy", "scipy", "onnx", "networkx"}
LAYERS = (
    ("gapless",),  # the modules beside the packages: the public names, `python -m gapless`
    ("gapless.cli.main",),
    ("gapless.cli.commands",),
    ("gapless.cli.completion", "gapless.cli.tasks"),
    ("gapless.cli.options",),
    ("gapless.cli.base",),
    ("gapless.view.formulations",),  # found by name: nothing imports them
    ("gapless.view.page", "gapless.view.plots", "gapless.view.terminal"),
    ("gapless.answers.kinds",),
    ("gapless.answers.explaining", "gapless.answers.plans"),
    ("gapless.answers.problems", "gapless.view.explaining"),
    ("gapless.view",),
    ("gapless.answers.standings",),
    ("gapless.answers.doctor", "gapless.answers.sweeps"),  # of many problems
    ("gapless.boards", "gapless.serving", "gapless.sweeps"),
    ("gapless.answers.comparing", "gapless.answers.files", "gapless.answers.files"),  # of files, too
    ("gapless.files",),
    ("gapless.view.text",),  # answers as the text of files
    ("gapless.answers",),
    ("gapless.api.slowdown",),
    ("gapless.api",),
    ("gapless.question",),
    ("gapless.profiler", "gapless.executor", "gapless.solvers", "gapless.formulations", "gapless.version"),
)
"""Packages of `gapless`, the highest first: each imports those below it, and none beside it.

A module belongs to the longest name that it begins with. The lowest row has its own rule, `MAY_IMPORT`.
"""
EVERY_KIND_OF_FILE = {"gapless/files/formats.py"}
"""The list of the files of all packages, those above it as well: it loads the schema that is asked for."""
SHOWS_ITSELF = {"gapless/api/comparison.py", "gapless/api/tuned.py"}
"""Results that notebooks show: they load the renderer when they are asked to."""
MAX_FILE_LINES = 1_000
MAX_FUNCTION_LINES = 60


def sources(*folders: str) -> list[Path]:
    """Return the Python files of top folders, each once: links inside `gapless` are not followed."""
    return [
        path
        for folder in folders or FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        if not any((ROOT / part).is_symlink() for part in path.relative_to(ROOT).parents)
    ]


def trees(*folders: str) -> Iterator[tuple[Path, ast.Module]]:
    """Yield the files of top folders, by their path below the root, with what is in them."""
    for path in sources(*folders):
        yield path.relative_to(ROOT), parsed(path)


@cache
def parsed(path: Path) -> ast.Module:
    """Return what is in a file; nearly every test here looks at all of them."""
    return ast.parse(path.read_text())


@pytest.fixture(scope="module", autouse=True)
def _forget() -> Iterator[None]:
    """Keep the million nodes for the tests of this file only; no collection of garbage looks at them."""
    gc.disable()
    yield
    parsed.cache_clear()
    imports.cache_clear()
    gc.enable()


@cache
def imports(tree: ast.Module) -> list[tuple[int, str, list[str]]]:
    """Return (level, module, names) of each import statement, at any depth."""
    found: list[tuple[int, str, list[str]]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(0, alias.name, []) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append((node.level, node.module or "", [alias.name for alias in node.names]))
    return found


def module_name(where: Path) -> str:
    """Return the name under which a file is imported."""
    parts = where.with_suffix("").parts
    return ".".join((() if parts[0] == "gapless" else ("gapless",)) + parts)


def imported(where: Path, tree: ast.Module) -> Iterator[str]:
    """Yield the full name of everything that a file imports, whether it is a module or a name in one."""
    inside = module_name(where).split(".")
    for level, module, names in imports(tree):
        parts = inside[: len(inside) - level] if level else []
        parts += [module] if module else []
        yield from (".".join([*parts, name]) for name in names or [""])


def folder_of(name: str) -> str:
    """Return the top folder of a full name; `gapless` for its own packages, and "" for all other code."""
    first, _, rest = name.partition(".")
    if first in FOLDERS[:4]:
        return f"absolute {first}"
    second = rest.partition(".")[0]
    return "" if first != "gapless" else second if second in FOLDERS else "gapless"


def test_imports_point_downwards() -> None:
    offences = [
        f"{where} imports {name}"
        for where, tree in trees()
        for name in imported(where, tree)
        if folder_of(name) not in {"", where.parts[0], *MAY_IMPORT[where.parts[0]]}
    ]
    assert not offences, "\n".join(offences)


def layer_of(name: str) -> tuple[int, str]:
    """Return the row of `LAYERS` that a full name is in, and its package there."""
    found = [
        (row, package)
        for row, packages in enumerate(LAYERS)
        for package in packages
        if f"{name}.".startswith(f"{package}.")
    ]
    return max(found, key=lambda one: len(one[1]))


def test_packages_of_gapless_import_what_is_below_them() -> None:
    offences = []
    for where, tree in trees("gapless"):
        row, package = layer_of(module_name(where).removesuffix(".__init__"))
        for name in imported(where, tree):
            if name.partition(".")[0] == "gapless":
                below, other = layer_of(name)
                if other != package and below <= row and str(where) not in EVERY_KIND_OF_FILE | SHOWS_ITSELF:
                    offences.append(f"{where} imports {name}, which is not below {package}")
    assert not offences, "\n".join(offences)


PLAIN_WORDS = {"cooperation", "jobs", "partition", "passage", "pipelines"}
"""Formulations whose names other text needs as words: only who imports from their packages names them."""
BUILDS_ON = {"passage": "chunking", "flow_shop": "jobs", "task_graph": "jobs", "jobs": "task_graph"}
"""Formulations that are another one with one condition left out, or more: they share tables or planners."""
FAMILIES = sorted(formulation_names())
PUBLIC_INDEX = {
    "gapless/__init__.pyi",
    *(str(path.relative_to(ROOT)) for path in (ROOT / "gapless").glob("*.py")),
}
"""The lists of public names, which have to say where they are."""


def test_no_module_names_a_formulation_but_its_own() -> None:
    """A family lives in packages and modules of its name; the rest of gapless works through the registry."""
    assert len(FAMILIES) > 1
    offences = []
    for path in [*sources(), *(ROOT / "gapless").glob("*.pyi")]:
        where = path.relative_to(ROOT)
        own = {*where.parts, where.stem}
        own |= {BUILDS_ON[name] for name in own & set(BUILDS_ON)}
        text = path.read_text()
        for family in FAMILIES:
            word = rf"\b(formulations|solvers)\.{family}\b" if family in PLAIN_WORDS else rf"\b{family}\b"
            named = re.search(word, text, re.IGNORECASE)
            if named and family not in own and str(where) not in PUBLIC_INDEX:
                offences.append(f"{where} names {named[0]}")
    assert not offences, "\n".join(offences)


def test_third_party_code_has_one_home() -> None:
    offences = []
    for where, tree in trees():
        homes = {str(where), *map(str, where.parents)}
        for level, module, _ in imports(tree):
            top = module.split(".")[0]
            if level == 0 and not homes & ONLY_IN.get(top, homes):
                offences.append(f"{where} imports {top}, which is for {sorted(ONLY_IN[top])}")
            if level == 0 and where.parts[0] == "formulations" and top in NOT_IN_FORMULATIONS:
                offences.append(f"{where} imports {top}")
    assert not offences, "\n".join(offences)


def functions(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield (name, lines without the docstring) of each function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            lines = node.end_lineno - node.body[0].lineno + 1  # a signature does not count
            if ast.get_docstring(node) is not None:
                docstring = node.body[0]
                assert docstring.end_lineno is not None
                lines -= docstring.end_lineno - docstring.lineno + 1
            yield node.name, lines


def test_files_and_functions_stay_small() -> None:
    offences = []
    for where, tree in trees(*FOLDERS, "tests", "benchmarks"):
        length = (ROOT / where).read_text().count("\n")
        if length > MAX_FILE_LINES:
            offences.append(f"{where} has {length} lines")
        offences += [
            f"{where}: {name} has {lines} lines"
            for name, lines in functions(tree)
            if lines > MAX_FUNCTION_LINES
        ]
    assert not offences, "\n".join(offences)


LEAST_LINES = 150
ALONE = {
    "another process or another machine loads it, and little else": {
        "executor/cluster/node_process.py",
        "executor/engines/conformance_layers.py",
        "executor/engines/mnn_converter.py",
        "executor/graph/opening_worker.py",
        "gapless/serving/json_process.py",
    },
    "one file for each engine, backend, or family of built-in networks": {
        "profiler/zoo/branches.py",
        "profiler/zoo/efficientnet.py",
        "profiler/zoo/yolo.py",
        "solvers/native.py",
    },
    "it needs a library that need not be there": {
        "profiler/applications/convolutions_opencl.py",
        "profiler/learned/trees.py",
        "solvers/pieces/cpsat.py",
    },
    "the kernels of a pipeline, which is a file that people copy": {"profiler/applications/octree_cpu.py"},
}
"""Modules under `LEAST_LINES` with one importer, which is beside them, by why they stand alone.

The list only gets shorter.
"""


def importers() -> dict[str, set[str]]:
    """Return by module of the product which others import it, at any depth; packages are no modules here."""
    known = {module_name(where): where for where, _ in trees() if where.stem not in {"__init__", "__main__"}}
    found: dict[str, set[str]] = {name: set() for name in known}
    for where, tree in trees():
        for name in imported(where, tree):
            for target in (name, name.rpartition(".")[0]):
                if target in found:
                    found[target].add(module_name(where).removesuffix(".__init__"))
                    break
    return found


def test_small_modules_with_one_importer_beside_them_say_why() -> None:
    """One importer in another folder is no reason to move: a folder is a subject."""
    paths = {module_name(where): str(where) for where, _ in trees()}
    lonely = {
        paths[name]
        for name, users in importers().items()
        if [user.rpartition(".")[0] for user in users - {name}] == [name.rpartition(".")[0]]
        and (ROOT / paths[name]).read_text().count("\n") < LEAST_LINES
    }
    allowed = set().union(*ALONE.values())
    assert lonely - allowed == set(), "merge them into their importer, or say why not"
    assert allowed - lonely == set(), "take them off the list"


def test_every_public_name_is_documented() -> None:
    offences = []
    for where, tree in trees():
        offences += [] if ast.get_docstring(tree) else [f"{where} has no docstring"]
        offences += [
            f"{where}: {node.name} has no docstring"
            for node in tree.body
            if isinstance(node, ast.FunctionDef | ast.ClassDef)
            and not node.name.startswith("_")
            and ast.get_docstring(node) is None
        ]
    assert not offences, "\n".join(offences)


def test_nothing_is_pickled_or_run_through_a_shell() -> None:
    unsafe = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}
    offences = []
    for where, tree in trees():
        modules = {module.split(".")[0] for level, module, _ in imports(tree) if level == 0}
        offences += [f"{where} imports {module}" for module in sorted(modules & unsafe)]
        offences += [f"{where} says shell=True"] if "shell=True" in (ROOT / where).read_text() else []
    assert not offences, "\n".join(offences)


def test_every_folder_with_modules_is_a_package() -> None:
    """What has no `__init__.py` is no package to setuptools, and silently missing in wheels."""
    folders = {path.relative_to(ROOT).parent for path in sources()}
    missing = [folder for folder in folders if not (ROOT / folder / "__init__.py").is_file()]
    assert not missing, missing


def test_the_links_make_one_import_name() -> None:
    links = {folder: ROOT / "gapless" / folder for folder in FOLDERS[:4]}
    offences = [
        str(link)
        for folder, link in links.items()
        if not link.is_symlink() or link.resolve() != ROOT / folder
    ]
    assert not offences, "\n".join(offences)


def test_importing_gapless_loads_nothing_heavy() -> None:
    code = (
        "import sys, gapless; "
        "heavy = {'numpy', 'onnx', 'onnxruntime', 'onnxslim', 'pydantic', 'typer', 'rich', 'scipy', 'spox', "
        "'z3', 'ortools', 'pulp', 'MNN'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_planning_loads_nothing_that_measures_or_opens_models() -> None:
    code = (
        "import sys; from gapless.cli.main import main; "
        "assert not main(['plan', 'pixel7a/alexnet-sparse']); "
        "heavy = {'gapless.profiler.profile', 'gapless.executor.engine', 'gapless.executor.workers'}; "
        "print(sorted(({'onnx'} | heavy) & set(sys.modules)), file=sys.stderr)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr.strip()) == (0, "[]")


def test_nothing_waits_by_select() -> None:
    """`select.select` raises from descriptor 1,024 on; `processes.readable` does not."""
    assert not [path for path in sources() if "select.select(" in path.read_text()]
