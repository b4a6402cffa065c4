"""How the problems and plans of one formulation are shown: what is special about it, with defaults for all.

A module of `gapless.view.formulations` that is called like a formulation has a `PRESENTER`. Formulations of
other packages come with an entry point of the group `gapless.presenters`, or are registered; one that has
none is shown by what its tables of terms and its scores say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

from ..answers.blocks import Block, Column, Tone, Unit, grid, table
from ..answers.graph_drawing import GraphDrawing
from ..answers.words import listed, millis, share
from ..formulations.deployment import Deployment
from ..formulations.errors import InvalidInputError
from ..formulations.history import History
from ..formulations.judge import score
from ..formulations.plan import Chunk, Plan
from ..formulations.plugins import Companions
from ..formulations.problem import Problem
from ..formulations.scores import Score
from ..formulations.streams import Stream

ENTRY_POINT_GROUP = "gapless.presenters"

_SHOWN_TERMS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitTime:
    """What a unit does with its time, milliseconds: work, what slowdown takes, waiting in between."""

    busy: float = 0.0
    lost: float = 0.0
    idle: float = 0.0


class Presenter:
    """How one formulation is shown. Objects have no state; the defaults hold where nothing is special."""

    plan_title: ClassVar[str] = "plan"
    """What tables of plans call their plans."""

    short_plans: ClassVar[bool] = True
    """Whether plans are short enough to stand in tables and sentences."""

    alternatives: ClassVar[int] = 2
    """How many of the best plans are asked for to find one that looks different from the best."""

    busy_span: ClassVar[str] = "of each unit"
    """What pictures say of busy times: of which time they are."""

    # Plans in tables and sentences

    def shown_terms(self, problem: Problem) -> tuple[str, ...]:
        """Return the terms that tables of plans show besides those of the objective."""
        return tuple(islice(problem.formulation.terms, _SHOWN_TERMS))

    def legend(self, problem: Problem) -> str:
        """Return what the shown terms mean."""
        infos = (problem.formulation.terms[term] for term in self.shown_terms(problem))
        return "; ".join(f"{info.label}: {info.text}" for info in infos)

    def distance_words(self) -> str:
        """Return what the distance of two plans counts."""
        return "how far it is from plan 1"

    def plan_text(self, plan: Plan) -> str:
        """Return a plan as tables of plans show it."""
        return str(plan)

    def plan_name(self, plan: Plan) -> str:
        """Return a plan as sentences name it."""
        return f"[{plan}]" if self.short_plans else f"plan {plan.plan_id}"

    def shape(self, problem: Problem, plan: Plan) -> object:
        """Return what two plans have in common that look alike."""
        return plan

    # In the terminal

    def problem_parts(
        self, problem: Problem, *, layers: range | None = None, plan: Plan | None = None
    ) -> Iterable[Block]:
        """Return what is in a problem besides its units: its networks, and what they cost.

        Parameters
        ----------
        problem
            What to show.
        layers
            Which layers of one network; None: all.
        plan
            A plan whose chunks are marked where layers are shown.
        """
        rows = []
        for network in problem.formulation.placed(problem):
            columns = zip(*problem.costs.of(network.name).layer_us, strict=True)
            times = (None if None in column else sum(time or 0 for time in column) for column in columns)
            rows.append((network.name, len(network.layers), *times))
        heads = [("network", Unit.NAME), ("layers", Unit.COUNT)]
        heads += [(unit, Unit.MICROSECONDS) for unit in problem.platform.unit_names]
        return [grid("Networks", heads, rows)]

    def plan_parts(self, problem: Problem, plan: Plan, judged: Score) -> Iterable[Block]:
        """Return a plan in detail: what `check` shows below its values."""
        busy = dict(zip(problem.platform.unit_names, judged.columns.get("busy_us", ()), strict=False))
        layers = {network.name: len(network.layers) for network in problem.networks}

        def runs(unit: str) -> str | None:
            own = [_chunk_words(chunk, layers[chunk.network]) for chunk in plan.chunks if chunk.unit == unit]
            return ", ".join(own) or None

        columns: list[Column[str]] = [
            Column("unit", Unit.NAME, lambda unit: unit),
            Column("runs", Unit.NAME, lambda unit: runs(unit) or "not used"),
            Column("busy time", Unit.MICROSECONDS, busy.get, optional=True),
        ]
        units = problem.platform.unit_names
        return [table("Units", columns, units, tone=lambda unit: Tone.PLAIN if runs(unit) else Tone.SOFT)]

    def best_parts(self, problem: Problem, plan: Plan, judged: Score) -> Iterable[Block]:
        """Return the best plan in detail: what `plan` and `compare` show below all others."""
        return self.plan_parts(problem, plan, judged)

    def file_parts(self, problem: Problem, plan: Plan, *, layers: range | None) -> Iterable[Block]:
        """Return what `show` adds to a plan beside what `check` says: `layers` of one network, or all."""
        return []

    def trace_title(self, trace: History) -> str:
        """Return what stands above the chart of a simulation; empty: nothing."""
        count = len(trace.arrivals_us)
        return f"simulation of {count} request{'' if count == 1 else 's'}"

    def is_one_round(self, problem: Problem) -> bool:
        """Return whether a simulation plays one round of many: what it shows is not what goes on."""
        return False

    def trace_parts(self, problem: Problem, trace: History) -> Iterable[Block]:
        """Return what stands between the chart of a simulation and its table."""
        return []

    def trace_rows(self, problem: Problem, trace: History) -> Iterator[tuple[str, str]]:
        """Yield (name, value) of what a simulation says besides the bubbles of the units."""
        yield "makespan", millis(trace.makespan_us)

    # Explanations

    def pace_words(self, problem: Problem, plan: Plan) -> str:
        """Return who sets the pace of a plan, in a sentence or two; empty: not known."""
        judged = score(problem, plan)
        known = zip(problem.platform.unit_names, judged.columns.get("busy_us", ()), strict=False)
        busy = {unit: time for unit, time in known if time is not None}
        if not busy:
            return ""
        most = max(busy.values())
        units = [unit for unit, time in busy.items() if time == most]
        verb = "are" if len(units) > 1 else "is"
        words = f"{listed(units)} {verb} busy for {millis(most)}"
        others = [time for time in busy.values() if time < most]
        return (
            f"{words}, the others for {share(max(others), most)} of that at most." if others else f"{words}."
        )

    # Reports and pictures

    def arranged(self, problem: Problem, plan: Plan) -> Deployment:
        """Return a plan as streams side by side, to be looked at.

        Raises
        ------
        InvalidPlanError
            It does not consist of streams.
        """
        operation = problem.formulation.operation
        if operation is not None:
            return operation.arrange(problem, plan)
        streams: dict[str, list[Chunk]] = {}
        for chunk in plan.chunks:
            streams.setdefault(chunk.request or chunk.network, []).append(chunk)
        return Deployment(streams=tuple(Stream(name=n, chunks=tuple(c)) for n, c in streams.items()))

    def deployment_words(self, problem: Problem, deployment: Deployment) -> str:
        """Return what runs, as the beginning of a sentence."""
        return f"A plan for {listed(deployment.networks)}"

    def chunk_columns(
        self, problem: Problem, deployment: Deployment
    ) -> tuple[tuple[str, ...], Mapping[tuple[str, int], tuple[str, ...]]]:
        """Return titles of further columns of the table of chunks, and their texts.

        Returns
        -------
        tuple of str, mapping
            The titles, and a text for each by the name of a stream and the index of a chunk.
        """
        return (), {}

    def pace_verb(self, problem: Problem, deployment: Deployment, pace: str) -> str:
        """Return what stands between what runs and how long it takes; `pace`: the term that says it."""
        return f"has a {problem.formulation.terms[pace].label} of"

    def latency(self, judged: Score) -> tuple[int | None, str]:
        """Return the predicted latency that a report shows (None: none), and what it is called."""
        return None, ""

    def facts(self, problem: Problem) -> Iterator[tuple[str, str]]:
        """Yield (name, text) of what the data of a problem asks."""
        return iter(())

    def glossary(self, problem: Problem) -> tuple[tuple[str, str], ...]:
        """Return what its terms mean, where the glossary of reports does not say it."""
        return tuple((info.label, f"{info.text}.") for info in problem.formulation.terms.values())

    def drawing(self, problem: Problem, plan: Plan) -> GraphDrawing | None:
        """Return a picture of the graph of the network, with who runs what; None: a chain needs none."""
        return None

    def unit_times(self, problem: Problem, plan: Plan) -> tuple[UnitTime, ...]:
        """Return what each unit does with its time.

        Raises
        ------
        InvalidPlanError
            The plan is not well formed.
        InvalidInputError
            Its score does not say it.
        """
        columns = score(problem, plan).columns
        if "busy_us" not in columns:
            raise InvalidInputError(f"scores of {problem.formulation.label} have no busy times")
        busy = columns["busy_us"]
        idle = columns.get("bubble_us", (None,) * len(busy))
        return tuple(
            UnitTime(busy=(work or 0) / 1000, idle=(bubble or 0) / 1000)
            for work, bubble in zip(busy, idle, strict=True)
        )


GENERIC = Presenter()
"""How formulations without a presenter are shown."""

_presenters = Companions(
    f"{__package__}.formulations",
    "PRESENTER",
    ENTRY_POINT_GROUP,
    what="presenter",
    like=Presenter,
    default=GENERIC,
)


def register_presenter(formulation: str, presenter: Presenter) -> None:
    """Make known in this process how a formulation is shown."""
    _presenters.register(formulation, presenter)


def presenter_of(problem: Problem) -> Presenter:
    """Return how a problem and its plans are shown.

    Raises
    ------
    InvalidInputError
        The presenter of another package cannot be loaded.
    """
    return _presenters.of(problem.formulation.name)


def _chunk_words(chunk: Chunk, layers: int) -> str:
    name = chunk.request or chunk.network
    return name if (chunk.start, chunk.stop) == (0, layers) else f"{name} {chunk.start}-{chunk.stop - 1}"
