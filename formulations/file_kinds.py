"""A file of another kind than is needed: what it is, and what to do with it.

A plan where a problem is needed, a folder, a model: people name them again and again; each has its answer.
"""

from __future__ import annotations

from pathlib import Path

PROBLEM = "gapless.problem"
PLAN = "gapless.plan"
PLANS = "gapless.plans"
_DEPLOYMENT = "gapless.deployment"
_PROFILE = "gapless.profile"
_EXECUTIONS = "gapless.executions"

_IN_FOLDER = {
    PROBLEM: ("problem.json",),
    PLAN: ("plan.json",),
    _DEPLOYMENT: ("deployment.json", "plan.json"),
    _PROFILE: ("profile.json",),
    _EXECUTIONS: ("executions.json",),
}
"""What files of a kind are called in the folders that `gapless tune` and `gapless profile` write."""

_INSTEAD = {
    (PLAN, PROBLEM): "it holds a plan. A problem comes first and the plan behind it; "
    "`gapless check {name}` looks at the plan alone",
    (PLANS, PROBLEM): "it holds a list of plans. A problem comes first and the list behind it; "
    "`gapless check {name}` looks at the best of them alone",
    (PROBLEM, PLAN): "it holds a problem. A plan comes behind its problem; "
    "`gapless plan {name} --out plan.json` makes one",
    (_DEPLOYMENT, PLAN): "it holds a deployment: `gapless run {name}` runs it",
    (_DEPLOYMENT, PROBLEM): "it holds a deployment. Its problem comes first: `gapless run PROBLEM {name}`",
    (_PROFILE, PROBLEM): "it holds measurements; the problem was written beside it, as problem.json",
    (PROBLEM, _EXECUTIONS): "it holds a problem; executed plans are in the executions.json of `gapless tune`",
    (PLAN, _EXECUTIONS): "it holds a plan; executed plans are in the executions.json of `gapless tune`",
}
"""{(kind that was found, kind that is needed): what to do instead}."""

_OTHER_MODEL = "it is a model of another kind; gapless takes ONNX: export it to a .onnx file first"

_FOREIGN = {
    ".onnx": "it is a model: `gapless profile {name}` measures it and writes gapless-out/problem.json, which "
    "can be planned; `gapless tune {name}` does all of it",
    ".pt": _OTHER_MODEL,
    ".pth": _OTHER_MODEL,
    ".tflite": _OTHER_MODEL,
    ".mnn": _OTHER_MODEL,
    ".npz": "it holds arrays; `gapless run --input` takes them",
    ".sqlite": "it is a store of measurements; --store takes it",
    ".html": "it is a report, for people",
}
"""Files that are no JSON, by how their names end."""


def instead(name: str, found: str, needed: str) -> str:
    """Return what to do with a file of another kind, as the end of a sentence; empty: nothing is known."""
    hint = _INSTEAD.get((found, needed), "")
    return f"; {hint.format(name=name)}" if hint else ""


def in_folder(path: Path, needed: str) -> str:
    """Return which file of a folder may be meant, as the end of a sentence.

    `needed`: the kind of file that is needed; empty: any.
    """
    for name in _IN_FOLDER.get(needed, ()):
        if (path / name).is_file():
            return f"; did you mean {path / name}?"
    return "; name a file"


def foreign(path: Path) -> str:
    """Return what a file is that is no JSON, as the end of a sentence; empty: it may be JSON."""
    return _FOREIGN.get(path.suffix.lower(), "").format(name=path)
