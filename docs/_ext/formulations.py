"""What each formulation minimises, what its rules can speak about, and which backends solve it, as tables."""

from __future__ import annotations

from collections.abc import Iterator

from gapless.formulations.problem import FEATURES
from gapless.formulations.registry import formulation_named, formulation_names
from gapless.solvers.registry import backend_names, get_backend


def reference() -> str:
    """Return the tables of all formulations."""
    return "\n".join(line for name in formulation_names() for line in _of(name))


def _of(name: str) -> Iterator[str]:
    formulation = formulation_named(name)
    yield f"## {name.replace('_', ' ').capitalize()}: {formulation.label}\n"
    yield "| objective | what it is | counts |\n|---|---|---|"
    for term, info in formulation.terms.items():
        yield f"| `{term}` | {info.text} | {info.dimension} |"
    yield "\n| quantity of rules | what it is | of |\n|---|---|---|"
    for quantity, told in formulation.quantities.items():
        indices = ", ".join(index.name for index in told.indices) or "the whole plan"
        yield f"| `{quantity}` | {told.text} | {indices} |"
    yield "\n| backend | answers | does not handle |\n|---|---|---|"
    for backend in backend_names():
        can = get_backend(backend).capabilities
        support = can.formulations.get(name, can.others)
        if support is not None:
            asked = sorted(FEATURES | formulation.features)
            lacking = [one for one in asked if support.features is not None and one not in support.features]
            lacking += [t for t in formulation.terms if support.terms is not None and t not in support.terms]
            shown = ", ".join(one.replace("_", " ") for one in lacking) or "-"
            yield f"| `{backend}` | {support.guarantee} | {shown} |"
    yield ""
