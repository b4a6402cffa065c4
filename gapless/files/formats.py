"""Every kind of JSON file that gapless writes or ships: what it is, who writes it, who reads it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from ..formulations.errors import InvalidInputError
from ..formulations.json_files import Schema
from ..formulations.nearness import meant, shown


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFormat:
    """One kind of file.

    Attributes
    ----------
    name
        What users call it; the file says "gapless." and this.
    location
        Module and name of its `Schema`.
    what
        What is in it.
    written_by, read_by
        Which commands write and read it.
    """

    name: str
    location: str
    what: str
    written_by: str
    read_by: str

    @property
    def schema(self) -> Schema[Any]:
        """Its name, version and type."""
        module, _, name = self.location.partition(":")
        found: Schema[Any] = getattr(import_module(f"..{module}", __package__), name)
        return found


_PACKAGE = "shipped with gapless"
_STORE = "tune and profile, inside store.sqlite"

FORMATS = (
    FileFormat(
        name="problem",
        location="formulations.files:PROBLEM",
        what="what is asked: device, networks, costs, objective, limits, rules, workload",
        written_by="tune, profile, show --out, predict --out, import --out",
        read_by="every command that takes a PROBLEM",
    ),
    FileFormat(
        name="plan",
        location="formulations.files:PLAN",
        what="an answer: which layers run where, and in which order requests are served",
        written_by="plan --out, tune",
        read_by="check, simulate, run, trace, explain, compare, report, export, interference, show",
    ),
    FileFormat(
        name="plans",
        location="formulations.files:PLANS",
        what="several answers to one problem, the best first",
        written_by="plan --top --out",
        read_by="whatever reads a plan; --plan chooses one",
    ),
    FileFormat(
        name="pareto",
        location="files.pareto_file:PARETO",
        what="trade-offs: plans that no other is better than in two or three terms, with what is proved",
        written_by="plan --pareto --out, tune --pareto",
        read_by="report, whatever reads a plan (--plan chooses one), and your Python",
    ),
    FileFormat(
        name="platform",
        location="formulations.files:PLATFORM",
        what="the processing units of one device",
        written_by="platforms --detect --out",
        read_by="show, and your Python",
    ),
    FileFormat(
        name="cluster",
        location="formulations.cluster_platform:CLUSTER",
        what="devices of a few types with their speeds and memories, and what joins them",
        written_by="you, links --out; several are shipped with gapless",
        read_by="--platform of the planning commands, show",
    ),
    FileFormat(
        name="links",
        location="profiler.links.samples:LINKS",
        what="messages between devices, and what they took",
        written_by="links --out, as FILE.links.json",
        read_by="links --samples",
    ),
    FileFormat(
        name="scenario",
        location="formulations.coordination.files:SCENARIO",
        what="who asks for which networks, when, by when they need the result; units that leave and return",
        written_by="you; several are shipped with gapless",
        read_by="show, and your Python",
    ),
    FileFormat(
        name="behaviour",
        location="formulations.coordination.files:BEHAVIOUR",
        what="how units behave at work: in company, cold, hot, and what power they draw",
        written_by="you; those of four phones are shipped with gapless",
        read_by="show, and your Python",
    ),
    FileFormat(
        name="sweep",
        location="sweeps.spec:SWEEP",
        what="many plans to make: models, platforms, numbers of devices, objectives, limits, backends",
        written_by="you",
        read_by="sweep, show",
    ),
    FileFormat(
        name="instances",
        location="sweeps.instances:INSTANCES",
        what="problems to compare backends on: files, shipped tables, drawn by size and seed",
        written_by="you",
        read_by="compare --instances, show",
    ),
    FileFormat(
        name="network",
        location="formulations.files:NETWORK",
        what="layers, tensors and legal cuts of one network",
        written_by=_PACKAGE,
        read_by="the planning commands with --platform, show, gapless itself",
    ),
    FileFormat(
        name="pieces",
        location="api.pieces:PIECES",
        what="a network as a chain of pieces: the piece of each operator, and what halos inside pieces cost",
        written_by="inspect --pieces and --granularity piece, in the cache",
        read_by="gapless itself",
    ),
    FileFormat(
        name="costs",
        location="formulations.files:COSTS",
        what="how long each layer takes on each unit, in whole microseconds",
        written_by=_PACKAGE,
        read_by="gapless itself",
    ),
    FileFormat(
        name="profile",
        location="profiler.profile:PROFILE",
        what="a measured network: tables of costs, fits, checks, receipts, warnings",
        written_by="profile, tune",
        read_by="interference, show",
    ),
    FileFormat(
        name="device",
        location="profiler.learned.device:DEVICE",
        what="times of a few networks on the units of a device, and the embeddings made from them",
        written_by="describe-device --out, learn-costs",
        read_by="predict-costs, learn-costs, show",
    ),
    FileFormat(
        name="predictor",
        location="profiler.learned.predictors:CARD",
        what="how a predictor of costs came about, and how good it is",
        written_by="learn-costs",
        read_by="predict-costs, show",
    ),
    FileFormat(
        name="deployment",
        location="files.plans:DEPLOYMENT",
        what="what a device runs: the streams of a plan, or replicas of a network",
        written_by="tune",
        read_by="run, trace, report, show",
    ),
    FileFormat(
        name="measurement",
        location="executor.tuning.documents:MEASUREMENT",
        what="a measured run: periods, latencies, receipts, the busy times of chunks",
        written_by="run --out",
        read_by="report, interference --measured, show",
    ),
    FileFormat(
        name="run",
        location="files.run_document:RUN",
        what="what the run of a folder is about, and how far it has come",
        written_by="tune, profile",
        read_by="runs, show, report, and the next run in that folder",
    ),
    FileFormat(
        name="comparison",
        location="files.comparison_file:COMPARISON",
        what="what each backend answered to the problem",
        written_by="compare --out, tune",
        read_by="report, show",
    ),
    FileFormat(
        name="tuning",
        location="executor.tuning.documents:TUNING",
        what="a race: every candidate, what was predicted and measured, why it left",
        written_by="tune",
        read_by="report, show",
    ),
    FileFormat(
        name="rounds",
        location="api.rounds:LOOP",
        what="a closed loop: what each round of tuning measured and learned",
        written_by="tune --rounds",
        read_by="show",
    ),
    FileFormat(
        name="executions",
        location="profiler.prediction.executions:EXECUTIONS",
        what="executed plans beside the tables that foretold them",
        written_by="tune",
        read_by="predict, show",
    ),
    FileFormat(
        name="interference",
        location="profiler.slowdown.interference.ratios:INTERFERENCE",
        what="how much longer each layer or chunk takes while other units are busy",
        written_by="interference --out",
        read_by="interference, show",
    ),
    FileFormat(
        name="contention",
        location="profiler.slowdown.contention.result:CONTENTION",
        what="how much networks slow each other down on two units, and their intensities",
        written_by="contention --out",
        read_by="--contention of the planning commands, show",
    ),
    FileFormat(
        name="chrome_trace",
        location="executor.pipeline.trace_export:TRACE",
        what="a trace for ui.perfetto.dev that also says what ran",
        written_by="tune, trace",
        read_by="report, show, Perfetto",
    ),
    FileFormat(
        name="export",
        location="executor.export.manifest:EXPORT",
        what="the manifest of an exported plan: pieces, units, settings, digests of all files",
        written_by="export",
        read_by="the runner beside it",
    ),
    FileFormat(
        name="slowdowns",
        location="formulations.files:INTERFERENCE",
        what="base slowdowns between units, intensity and sensitivity of networks",
        written_by=_PACKAGE,
        read_by="gapless itself; a problem holds the same",
    ),
    FileFormat(
        name="analytic",
        location="profiler.analytic.model:ANALYTIC",
        what="a device of which only few times are known: speeds, bandwidths, known totals",
        written_by=_PACKAGE,
        read_by="gapless itself",
    ),
    FileFormat(
        name="paper_contention",
        location="profiler.slowdown.contention.paper:PAPER",
        what="the slowdowns that Hetero2Pipe prints",
        written_by=_PACKAGE,
        read_by="gapless itself",
    ),
    FileFormat(
        name="sweep_answer",
        location="sweeps.answers:ANSWER",
        what="the answer to one task of a sweep",
        written_by="sweep, inside sweep.sqlite",
        read_by="sweep --resume",
    ),
    FileFormat(
        name="trial",
        location="executor.tuning.documents:TRIAL",
        what="one measurement of one candidate",
        written_by=_STORE,
        read_by="tune --resume",
    ),
    FileFormat(
        name="timing",
        location="profiler.records:TIMING",
        what="the samples of one measured piece",
        written_by=_STORE,
        read_by="profile and tune --resume",
    ),
    FileFormat(
        name="operators",
        location="profiler.records:OPERATORS",
        what="the times of the operators of one measured piece",
        written_by=_STORE,
        read_by="profile and tune --resume",
    ),
)
"""All kinds of files, those that users meet first."""

_BY_NAME = {entry.name: entry for entry in FORMATS}


def file_format(name: str) -> FileFormat:
    """Return the kind of file of a name, with or without "gapless." before it.

    Raises
    ------
    InvalidInputError
        There is no such kind.
    """
    short = name.removeprefix("gapless.")
    if short not in _BY_NAME:
        hint = meant(short, _BY_NAME, listed_by="`gapless schema` lists them")
        raise InvalidInputError(f"no kind of file is called {shown(name)}; {hint}")
    return _BY_NAME[short]
