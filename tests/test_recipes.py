"""The recipes of CONTRIBUTING.md, followed to the letter in a copy of the sources.

A term and a quantity are added as the recipe says; then every backend is asked, in a process of its own. What
no native algorithm knows must be refused or checked, never guessed.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
FOLDERS = ("formulations", "solvers", "profiler", "executor", "gapless")
QUANTITIES = "formulations/chunking/quantities.py"
TOTALS = "formulations/chunking/encoding.py"
VIEW = "formulations/chunking/view.py"

TERM = {
    QUANTITIES: (
        (
            "        self.period_us = max(loads)\n",
            "        self.period_us = max(loads)\n        self.cuts = len(parts) - 1\n",
        ),
        (
            "TERMS = table(\n    (\n",
            "TERMS = table(\n    (\n        TermInfo('cuts', 'cuts of the network', "
            "most=lambda chain: chain.unit_count),\n",
        ),
    ),
    TOTALS: (
        (
            "        Quantity.LATENCY: latency,\n",
            "        Quantity.LATENCY: latency,\n        'cuts': linear(((1, used) for used in uses), -1),\n",
        ),
    ),
}
"""Files, and what is replaced by what in them: the value, its term, and its definition."""

QUANTITY = {
    QUANTITIES: (
        (
            "QUANTITIES = quantity_table(\n    (\n",
            "QUANTITIES = quantity_table(\n    (\n        QuantityInfo(\n            name='layers_on',\n"
            "            text='layers on a unit',\n            indices=(UNIT,),\n"
            "            most=lambda chain, unit: chain.layer_count,\n"
            "            read=lambda plan, unit: "
            "sum(b - a for a, b, u in plan.parts if u == unit),\n        ),\n",
        ),
    ),
    VIEW: (
        (
            "    period_us = whole(",
            "    def layers_on(self, unit: str) -> IntVar:\n"
            '        """Return the number of layers on a unit."""\n'
            "        return self._variables.number('layers_on', self._unit(unit))\n\n"
            "    period_us = whole(",
        ),
    ),
    TOTALS: (
        (
            "    return {(quantity, ()): expr for quantity, expr in defined.items()}\n",
            "    totals = {(quantity, ()): expr for quantity, expr in defined.items()}\n"
            "    found: dict[VariableKey, Expr] = {**totals}\n"
            "    for unit in units:\n"
            "        on = (variables.truth(Quantity.ON, layer, unit) for layer in range(chain.layer_count))\n"
            "        found['layers_on', (unit,)] = linear((1, literal) for literal in on)\n"
            "    return found\n",
        ),
    ),
}

FAMILIES = {
    "cooperation": "period_us",
    "flow_shop": "period_us",
    "jobs": "makespan_us",
    "partition": "period_us",
    "pipelines": "period_us",
    "task_graph": "latency_us",
}
"""The other families: what the new term is worth."""
HOMES = {"task_graph": "jobs/tasks.py"}
"""Where the table of terms is, if not in the `quantities.py` of the family."""

ASK_NATIVE = """
import json, sys
from importlib import import_module
from gapless.formulations.errors import UnsupportedFeatureError
from gapless.solvers.session import solve

home = "gapless.solvers." + sys.argv[1]
plain = import_module(home + ".samples").samples().plain
first = plain.objective.terms[0]
found = {}
for name in ("native", *import_module(home).FAMILY.backends):
    for place, order in (("new", "new"), ("after", first + ",new")):
        problem = plain.with_objective(order)
        try:
            found[name + " " + place] = str(solve(problem, name, explain=False).status)
        except UnsupportedFeatureError as error:
            found[name + " " + place] = sorted(error.missing)
print(json.dumps(found))
"""

ASK = """
import json, sys
import gapless
from gapless.formulations.errors import UnsupportedFeatureError
from gapless.solvers.chunking.samples import sample_problem
from gapless.solvers.protocol import SolveOptions
from gapless.solvers.session import solve
from gapless.formulations.files import dump_problem, parse_problem

problem = sample_problem()
if sys.argv[1] == "term":
    problem = problem.with_objective("cuts,period")
else:
    problem = problem.with_rules(lambda view: (view.layers_on("gpu") == 2) & (view.layers_on("big") >= 1))
    assert parse_problem(dump_problem(problem).encode(), name="copy") == problem
found = {}
for name in ("exhaustive", "native", "cpsat", "z3", "pulp"):
    try:
        result = solve(problem, name, SolveOptions(top=3), explain=False)
        found[name] = [str(result.status), [str(candidate.plan) for candidate in result.candidates]]
    except UnsupportedFeatureError as error:
        found[name] = sorted(error.missing)
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recipes")
    for name in FOLDERS:
        shutil.copytree(
            ROOT / name, folder / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "*.json")
        )
    return folder


def follow(
    copy: Path, tmp_path: Path, edits: Mapping[str, tuple[tuple[str, str], ...]], what: str, ask: str = ASK
) -> Any:
    """Follow a recipe in a copy, and return what each backend answers."""
    folder = tmp_path / "sources"
    shutil.copytree(copy, folder, symlinks=True)
    shutil.copytree(ROOT / "solvers" / "golden", folder / "solvers" / "golden", dirs_exist_ok=True)
    for name, replacements in edits.items():
        path = folder / name
        text = path.read_text()
        for old, new in replacements:
            assert text.count(old) == 1, f"{name} has changed: the recipe of this test needs {old!r} once"
            text = text.replace(old, new)
        path.write_text(text)
    run = subprocess.run(
        [sys.executable, "-c", ask, what],
        cwd=folder,
        env={"PYTHONPATH": str(folder), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_a_new_objective_term(copy: Path, tmp_path: Path) -> None:
    found = follow(copy, tmp_path, TERM, "term")
    assert len(TERM) <= 3
    oracle = found.pop("exhaustive")
    assert oracle[0] == "optimal"
    assert found.pop("native") == ["objective cuts"]
    assert found == dict.fromkeys(found, oracle)


@pytest.mark.parametrize("family", FAMILIES)
def test_native_algorithms_refuse_a_new_term(copy: Path, tmp_path: Path, family: str) -> None:
    table = "TERMS = table(\n    (\n"
    new = f"        TermInfo('new', 'new', field={FAMILIES[family]!r}),\n"
    edits = {f"formulations/{HOMES.get(family, f'{family}/quantities.py')}": ((table, table + new),)}
    found = follow(copy, tmp_path, edits, family, ASK_NATIVE)
    assert found.pop("native new") == ["objective new"]
    assert found.pop("native after") == ["objective new"]
    assert all(answer in ("optimal", "feasible", ["objective new"]) for answer in found.values())


def test_a_new_quantity_of_rules(copy: Path, tmp_path: Path) -> None:
    found = follow(copy, tmp_path, QUANTITY, "quantity")
    assert len(QUANTITY) <= 3
    oracle = found.pop("exhaustive")
    assert oracle[0] == "optimal"
    assert found == dict.fromkeys(found, oracle)


def test_without_a_definition_the_answer_is_still_exact(copy: Path, tmp_path: Path) -> None:
    """A quantity that no encoding defines is free in the model; the judge and the search make up for it."""
    edits = {name: replacements for name, replacements in QUANTITY.items() if name != TOTALS}
    found = follow(copy, tmp_path, edits, "quantity")
    assert found == dict.fromkeys(found, found["exhaustive"])
