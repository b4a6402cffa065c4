"""Options of comparisons: who takes part, and on which problems."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ..base.general_options import heading, output_option
from .solving import solving_option

_many_option = heading("Many problems")

BackendsOption = Annotated[
    str | None,
    solving_option(
        help="Comma-separated, each as for `plan --backend`; otherwise "
        "native, exhaustive, cpsat, z3, pulp; with --passage any "
        "native, exhaustive, cpsat, pulp, z3, fallback, one-unit; "
        "for pipelines native, cpsat, pulp, pipeedge, epipe-ga, pico-costs, pipedream, greedy; "
        "for groups native, cpsat, pulp, pico, pico-literal; "
        "for a workload native, cpsat, pulp, hetero2pipe, annealing, band, pipe-it, serial; "
        "for single requests native, cpsat, pulp, z3; for convex parts native, cpsat, z3, pulp; "
        "all but the first with 10 s for each.",
    ),
]
OneMoreOption = Annotated[
    str | None,
    solving_option(
        metavar="NAME",
        help="One more beside these, e.g. a heuristic of your own as module:Class or file.py:Class.",
    ),
]
KindsOption = Annotated[
    str | None,
    solving_option(
        metavar="all|LIST",
        help="Of a model over a cluster, instead of backends: what plans can be, comma-separated, each "
        "solved by its usual backend: one (pipeline), many (pipelines side by side), groups (of devices "
        "that share chunks), graph (groups with cuts anywhere in the graph).",
    ),
]
LayerOrdersOption = Annotated[
    str | None,
    solving_option(
        metavar="all|LIST",
        help="Of a network with branches, instead of backends: what plans cut, comma-separated, each solved "
        "by the usual backends until one has a proof: the given order of the layers (fixed), a better one "
        "(best), the graph itself (free).",
    ),
]
InstancesOption = Annotated[
    str | None,
    _many_option(
        metavar="FOLDER|SPEC",
        help="Compare on many problems instead of one: a folder of problem files; a file that names "
        "problems, or has them drawn by size and seed (`gapless schema instances`, or Python with a function "
        "`problems`); or shipped names, comma-separated, with * for any, e.g. pixel7a/*.",
    ),
]
ContestJobsOption = Annotated[
    int | None,
    _many_option(
        min=1,
        max=1024,
        help="Answers that are looked for at once; otherwise one: more make times longer.",
    ),
]
ResumeContestOption = Annotated[
    bool,
    _many_option(
        "--resume",
        help="Go on with the comparison of the folder: what is answered is not solved again, what failed is.",
    ),
]
OverwriteContestOption = Annotated[
    bool,
    _many_option(
        "--overwrite", help="Remove the comparison that is in the folder first: its files, none of yours."
    ),
]
ContestOutOption = Annotated[
    Path | None,
    output_option(
        "--out",
        "-o",
        help="Also write the JSON document to this file; of many problems: the folder for everything that is "
        "written, otherwise gapless-comparison.",
    ),
]
