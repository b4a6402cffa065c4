"""What is asked of gapless: which problem, which plans of it are allowed, and what is wanted of them.

Each field is declared once. From it come the option of the command line, the key in files of plans and
sweeps, and the words of an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from typing import Any, Self

from ..formulations.deployment import Mode
from ..formulations.errors import InvalidInputError
from ..formulations.limits import LIMITS, Limits
from ..formulations.workload import Execution, RequestOrder
from .fields import Field, Said, attributes, said
from .values import (
    DEVICES,
    ENERGY,
    PERCENT,
    SHAPES,
    SIZE,
    STATES,
    TIME,
    WINDOWS,
    YES,
    Form,
    Window,
    choice_form,
    count_form,
    text_form,
)


class About(StrEnum):
    """Which problems a field has a meaning for; its text is what an error says of another one."""

    ALL = ""
    WORKLOADS = 'a workload: give --workload too, e.g. --workload "yolov4,bert,mobilenetv2x3"'
    DEVICES = "a network over devices: give --platform too, e.g. --platform epipe-case-1"
    GROUPS = "groups of devices: give --groups too"
    SIDE_BY_SIDE = "layers side by side: give --layer-order free --objective latency, too"


ASKED = "What is asked"
"""Heading of the options of a problem."""

_said = attributes(ASKED)


@dataclass(frozen=True, kw_only=True)
class Question(Said):
    """A problem, and what is asked of it; None: nothing is said.

    Attributes
    ----------
    problem, workload, platform, devices, batch, shape, costs, contention, state
        Which problem: a file or a name; requests; what runs them, and what that costs; what requests of a
        recurrent network leave behind.
    order, execution, mode, task_slots, window
        How requests of a workload are served.
    pipelines, passage, groups, over_graph, layer_order, segments
        Which plans are allowed: the class that a proof is about.
    objective, limits
        What is wanted of them.
    """

    problem: str | None = _said(
        "A problem file, or a shipped name such as pixel7a/alexnet-sparse (see `gapless list problems`); "
        "a plan or a folder of `gapless tune` stands for its problem. With --platform and a cluster: a "
        "model, an ONNX file or a built-in network (see `gapless list networks`). Not needed with "
        "--workload.",
        text_form("PROBLEM"),
        argument=True,
    )
    workload: str | None = _said(
        'Requests that share the units: networks with counts, e.g. "yolov4,bertx3"; '
        "mobilenetv2*4 is one request of a batch of 4."
    )
    platform: str | None = _said(
        "The devices that a model is planned over: a cluster file, or a shipped cluster such as "
        "epipe-case-1; or with --workload, or a network that it has, a shipped platform such as kirin990 "
        "(see `gapless list problems`)."
    )
    devices: Mapping[str, int] | None = _said(
        "How many devices of a type of the cluster there are, e.g. pi5=2,pi4=0; other types stay as "
        "they are.",
        DEVICES,
        About.DEVICES,
    )
    batch: int | None = _said(
        "Inferences that pass the devices of a cluster together; otherwise one.", count_form(), About.DEVICES
    )
    shape: Mapping[str, tuple[int, ...]] | None = _said(
        "With --platform and an ONNX file: fixed shape of an input with dynamic dimensions; repeatable.",
        SHAPES,
        About.DEVICES,
    )
    order: RequestOrder | None = _said(
        "Whether the order of the requests may be changed.", choice_form(RequestOrder), About.WORKLOADS
    )
    execution: Execution | None = _said(
        "How the units keep step: asynchronous (freely), or columns (as in Hetero2Pipe).",
        choice_form(Execution, "WAY"),
        About.WORKLOADS,
        rare=True,
    )
    mode: Mode | None = _said(
        "The requests come over and over.",
        choice_form(Mode),
        About.WORKLOADS,
        flag=Mode.STREAM,
        called="--stream",
    )
    task_slots: int | None = _said("Most requests on their way at once.", count_form())
    contention: str | None = _said(
        "Slowdowns between the units, measured or estimated, as written by `gapless costs contention "
        "--out`; instead of those of the problem.",
        text_form("FILE"),
        About.WORKLOADS,
    )
    costs: str | None = _said(
        "What layers of a shipped problem cost: heavy (each layer while all units run it; the default), "
        "isolated (alone), interpolated (between both, by how many units a plan uses), or a registered "
        "co-run cost model."
    )
    state: Mapping[str, str] | None = _said(
        "A recurrent network: an input takes the last value of an output, e.g. h=h_out; repeatable. What "
        "reads it and what makes it are in one chunk.",
        STATES,
        rare=True,
    )
    pipelines: str | None = _said(
        "How many pipelines may run side by side, each on units of its own (replicas are pipelines of "
        "one unit); what is minimised is then the interval between results, unless --objective says "
        "more.",
        text_form("many|one|N"),
    )
    passage: str | None = _said(
        "Whether a unit may have several chunks of a request (any), so that requests come back to it, "
        "or one (once). Otherwise any for one network if it is known what a hop costs, as in a profile, "
        "and else once; of a workload any; there also one, in the order of the platform, requests in one "
        "order (ordered), or in this one (ordered:gpu,npu,cpu).",
        text_form("PASSAGE"),
    )
    groups: str | None = _said(
        "With --platform and an ONNX model: groups of at most N devices serve a chunk together, each "
        "computes some rows of its result; layers are then pieces of the network.",
        text_form("all|N"),
        About.DEVICES,
    )
    over_graph: bool | None = _said(
        "With --groups: chunks begin and end anywhere in the graph of the model, not only between its "
        "pieces; for graphs with few down-sets.",
        YES,
        About.GROUPS,
        flag=True,
        rare=True,
    )
    layer_order: str | None = _said(
        "What plans cut: the given order of the layers (fixed), a better one (best) or this one "
        "(0-2,5,3-4), or the graph (free): convex parts; with --objective latency layers side by side.",
        text_form("fixed|best|free|..."),
        rare=True,
    )
    segments: str | None = _said(
        "What is one task side by side: a layer, or a run of them.",
        text_form("layers|branches"),
        About.SIDE_BY_SIDE,
        rare=True,
    )
    objective: str | None = _said(
        "What to minimise, most important first: period, gapness, paper_gapness, latency, bubbles, "
        "peak_memory, idle, energy, units, hops, stream_latency, in_flight, and with a workload makespan "
        '(the default there), bottleneck, work, contention, displacement; or "paper", or "slack:50" '
        "(least idle share among plans whose period is within 50 permille of the least one)."
    )
    limits: Limits = Limits()
    window: Mapping[str, Window] | None = _said(
        "When a request of a workload comes, and when it has to be done, e.g. bert=20ms..500ms; either "
        "may be left out; of all requests of a network by its name; repeatable.",
        WINDOWS,
        About.WORKLOADS,
    )

    def __post_init__(self) -> None:
        if not isinstance(self.limits, Limits):
            raise InvalidInputError(f"limits is {self.limits!r}, must be gapless.Limits(...)")
        super().__post_init__()

    @classmethod
    def known_fields(cls) -> tuple[Field, ...]:
        """Return all fields, in the order of help; each limit is one of its own."""
        return asked_fields()

    def with_values(self, values: Mapping[str, Any]) -> Self:
        """Return this question with other values, by the names of fields; those of limits among them."""
        limits = {name: value for name, value in values.items() if name in LIMITS}
        others = {name: value for name, value in values.items() if name not in LIMITS}
        return replace(self, **others, limits=replace(self.limits, **limits))

    def over(self, other: Question) -> Question:
        """Return another question with what this one says in place of what that one does."""
        return other.with_values(dict(self.said()))

    def value(self, name: str) -> Any:
        """Return what is said of a field or a limit, or None."""
        return getattr(self.limits if name in LIMITS else self, name)


@cache
def asked_fields() -> tuple[Field, ...]:
    """Return the fields of a question, in the order of help; each limit is one of its own."""
    own = Question.own_fields()
    place = next(place for place, each in enumerate(own) if each.name == "window")
    limits = [
        said(info.help, form, heading=ASKED, bare=form is not PERCENT, name=name)
        for name, info in LIMITS.items()
        for form in (_form_of_limit(name),)
    ]
    return (*own[:place], *limits, *own[place:])


def renamed(option: str) -> Field | None:
    """Return the field whose option had another name before values had units."""
    return next((each for each in asked_fields() if each.old_option == option != each.option), None)


_FORMS = {"_us": TIME, "_nj": ENERGY, "_bytes": SIZE, "_permille": PERCENT}
"""How the names of limits end, and how their values are written."""


def _form_of_limit(name: str) -> Form:
    return next(
        (form for unit, form in _FORMS.items() if name.endswith(unit)), count_form(LIMITS[name].least)
    )
