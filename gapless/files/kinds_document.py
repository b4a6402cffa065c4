"""A comparison of kinds of plans as a machine-readable document."""

from __future__ import annotations

from collections.abc import Sequence

from ..api.kinds import KindResult
from . import documents


def kinds_document(found: Sequence[KindResult]) -> documents.Document:
    """Return the document of `gapless compare --kinds`."""
    return {
        **documents.header("kinds"),
        "kinds": [
            {
                "kind": one.kind,
                "throughput_per_s": one.throughput,
                "problem": None if one.problem is None else documents.problem_data(one.problem),
                "result": None
                if one.problem is None or one.result is None
                else documents.result_data(one.problem, one.result),
                "failure": one.failure or None,
            }
            for one in found
        ],
    }
