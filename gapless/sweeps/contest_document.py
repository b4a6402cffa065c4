"""A comparison over many problems as a document: what `compare --instances --json` prints."""

from __future__ import annotations

from ..files import documents
from .contest import InstanceComparison
from .standings import SHIFT_S, profiles, standings


def contest_document(found: InstanceComparison) -> documents.Document:
    """Return the document of `gapless compare --instances`."""
    return {
        **documents.header("instance_comparison"),
        "title": found.title,
        "instances": list(found.instances),
        "backends": list(found.backends),
        "time_limit_s": found.time_limit_s,
        "tasks": found.total,
        "resumed": found.resumed,
        "interrupted": found.interrupted,
        "disagreements": list(found.disagreements),
        "shift_s": SHIFT_S,
        "standings": [documents.plain_data(one) for one in standings(found)],
        "profiles": [documents.plain_data(one) for one in profiles(found)],
        "answers": [
            {
                "instance": one.instance,
                "backend": one.backend,
                "row": one.row.columns,
                "course": documents.plain_data(one.course),
            }
            for one in found.answers
        ],
    }
