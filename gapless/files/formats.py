"""Every kind of JSON file that gapless writes or ships: what it is, who writes it, who reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..formulations.errors import InvalidInputError
from ..formulations.json_files import Schema
from ..formulations.validation import meant, shown


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFormat:
    """One kind of file."""

    name: str  # what users call it; the file says "gapless." and this
    what: str  # what is in it
    written_by: str
    read_by: str
    """Which commands write and read it."""

    @property
    def schema(self) -> Schema[Any]:
        """Its name, version and type."""
        return _schema(self.name)


_PACKAGE = "shipped with gapless"
_STORE = "tune and profile, inside store.sqlite"

FORMATS = (
    FileFormat(
        name="problem",
        what="what is asked: device, networks, costs, objective, limits, rules, workload",
        written_by="tune, profile, show --out, costs predict --out, tools import --out",
        read_by="every command that takes a PROBLEM",
    ),
    FileFormat(
        name="plan",
        what="an answer: which layers run where, and in which order requests are served",
        written_by="plan --out, tune",
        read_by="simulate, run, explain, compare, report, export, show, tools check, tools trace, "
        "costs interference",
    ),
    FileFormat(
        name="plans",
        what="several answers to one problem, the best first",
        written_by="plan --top --out",
        read_by="whatever reads a plan; --plan chooses one",
    ),
    FileFormat(
        name="pareto",
        what="trade-offs: plans that no other is better than in two or three terms, with what is proved",
        written_by="plan --pareto --out, tune --pareto",
        read_by="report, whatever reads a plan (--plan chooses one), and your Python",
    ),
    FileFormat(
        name="platform",
        what="the processing units of one device",
        written_by="device detect --out",
        read_by="show, and your Python",
    ),
    FileFormat(
        name="cluster",
        what="devices of a few types with their speeds and memories, and what joins them",
        written_by="you, device links --out; several are shipped with gapless",
        read_by="--platform of the planning commands, show",
    ),
    FileFormat(
        name="links",
        what="messages between devices, and what they took",
        written_by="device links --out, as FILE.links.json",
        read_by="device links --samples",
    ),
    FileFormat(
        name="scenario",
        what="who asks for which networks, when, by when they need the result; units that leave and return",
        written_by="you; several are shipped with gapless",
        read_by="show, and your Python",
    ),
    FileFormat(
        name="behaviour",
        what="how units behave at work: in company, cold, hot, and what power they draw",
        written_by="you; those of four phones are shipped with gapless",
        read_by="show, and your Python",
    ),
    FileFormat(
        name="sweep",
        what="many plans to make: models, platforms, numbers of devices, objectives, limits, backends",
        written_by="you",
        read_by="sweep, show",
    ),
    FileFormat(
        name="instances",
        what="problems to compare backends on: files, shipped tables, drawn by size and seed",
        written_by="you",
        read_by="compare --instances, show",
    ),
    FileFormat(
        name="network",
        what="layers, tensors and legal cuts of one network",
        written_by=_PACKAGE,
        read_by="the planning commands with --platform, show, gapless itself",
    ),
    FileFormat(
        name="pieces",
        what="a network as a chain of pieces: the piece of each operator, and what halos inside pieces cost",
        written_by="tools inspect --pieces and --granularity piece, in the cache",
        read_by="gapless itself",
    ),
    FileFormat(
        name="costs",
        what="how long each layer takes on each unit, in whole microseconds",
        written_by=_PACKAGE,
        read_by="gapless itself",
    ),
    FileFormat(
        name="profile",
        what="a measured network: tables of costs, fits, checks, receipts, warnings",
        written_by="profile, tune",
        read_by="costs interference, show",
    ),
    FileFormat(
        name="device",
        what="times of a few networks on the units of a device, and the embeddings made from them",
        written_by="device describe --out, costs learn",
        read_by="costs predict, costs learn, show",
    ),
    FileFormat(
        name="predictor",
        what="how a predictor of costs came about, and how good it is",
        written_by="costs learn",
        read_by="costs predict, show",
    ),
    FileFormat(
        name="deployment",
        what="what a device runs: the streams of a plan, or replicas of a network",
        written_by="tune",
        read_by="run, tools trace, report, show",
    ),
    FileFormat(
        name="measurement",
        what="a measured run: periods, latencies, receipts, the busy times of chunks",
        written_by="run --out",
        read_by="report, costs interference --measured, show",
    ),
    FileFormat(
        name="run",
        what="what the run of a folder is about, and how far it has come",
        written_by="tune, profile",
        read_by="list runs, show, report, and the next run in that folder",
    ),
    FileFormat(
        name="comparison",
        what="what each backend answered to the problem",
        written_by="compare --out, tune",
        read_by="report, show",
    ),
    FileFormat(
        name="tuning",
        what="a race: every candidate, what was predicted and measured, why it left",
        written_by="tune",
        read_by="report, show",
    ),
    FileFormat(
        name="rounds",
        what="a closed loop: what each round of tuning measured and learned",
        written_by="tune --rounds",
        read_by="show",
    ),
    FileFormat(
        name="executions",
        what="executed plans alongside the tables that predicted them",
        written_by="tune",
        read_by="costs judge, show",
    ),
    FileFormat(
        name="interference",
        what="how much longer each layer or chunk takes while other units are busy",
        written_by="costs interference --out",
        read_by="costs interference, show",
    ),
    FileFormat(
        name="contention",
        what="how much networks slow each other down on two units, and their intensities",
        written_by="costs contention --out",
        read_by="--contention of the planning commands, show",
    ),
    FileFormat(
        name="chrome_trace",
        what="a trace for ui.perfetto.dev that also says what ran",
        written_by="tune, tools trace",
        read_by="report, show, Perfetto",
    ),
    FileFormat(
        name="export",
        what="the manifest of an exported plan: pieces, units, settings, digests of all files",
        written_by="export",
        read_by="the runner beside it",
    ),
    FileFormat(
        name="slowdowns",
        what="base slowdowns between units, intensity and sensitivity of networks and their slices",
        written_by="costs contention --platform --out",
        read_by="plan --contention; a problem holds the same",
    ),
    FileFormat(
        name="analytic",
        what="a device of which only few times are known: speeds, bandwidths, known totals",
        written_by=_PACKAGE,
        read_by="gapless itself",
    ),
    FileFormat(
        name="paper_contention",
        what="the slowdowns that Hetero2Pipe prints",
        written_by=_PACKAGE,
        read_by="gapless itself",
    ),
    FileFormat(
        name="sweep_answer",
        what="the answer to one task of a sweep",
        written_by="sweep, inside sweep.sqlite",
        read_by="sweep --resume",
    ),
    FileFormat(
        name="trial",
        what="one measurement of one candidate",
        written_by=_STORE,
        read_by="tune --resume",
    ),
    FileFormat(
        name="timing",
        what="the samples of one measured piece",
        written_by=_STORE,
        read_by="profile and tune --resume",
    ),
    FileFormat(
        name="operators",
        what="the times of the operators of one measured piece",
        written_by=_STORE,
        read_by="profile and tune --resume",
    ),
    FileFormat(
        name="hops",
        what="what chunks took that go to and fro between units",
        written_by=_STORE,
        read_by="profile and tune --resume",
    ),
)
"""All kinds of files, those that users meet first."""

_BY_NAME = {entry.name: entry for entry in FORMATS}


def file_format(name: str) -> FileFormat:
    """Return the kind of file of a name, with or without "gapless." before it.

    Raises InvalidInputError: there is no such kind.
    """
    short = name.removeprefix("gapless.")
    if short not in _BY_NAME:
        hint = meant(short, _BY_NAME, listed_by="`gapless list files` lists them")
        raise InvalidInputError(f"no kind of file is called {shown(name)}; {hint}")
    return _BY_NAME[short]


def _schema(name: str) -> Schema[Any]:
    """Return the schema of a kind of file; modules that have none of it are not loaded."""
    from ..formulations import files
    from ..formulations.cluster_platform import CLUSTER
    from ..formulations.coordination.scenario import BEHAVIOUR, SCENARIO

    given: list[Schema[Any]] = [files.PROBLEM, files.PLAN, files.PLANS, files.PLATFORM, files.NETWORK]
    given += [files.COSTS, files.INTERFERENCE, CLUSTER, BEHAVIOUR, SCENARIO]
    found = next((schema for schema in given if schema.format == f"gapless.{name}"), None)
    return _schema_of_gapless(name) if found is None else found


def _schema_of_gapless(name: str) -> Schema[Any]:
    found: Schema[Any]
    match name:
        case "pareto":
            from .pareto_file import PARETO as found
        case "sweep":
            from ..sweeps.spec import SWEEP as found
        case "instances":
            from ..sweeps.instances import INSTANCES as found
        case "pieces":
            from ..api.pieces import PIECES as found
        case "deployment":
            from .plans import DEPLOYMENT as found
        case "run":
            from .run_document import RUN as found
        case "comparison":
            from .comparison_file import COMPARISON as found
        case "rounds":
            from ..api.tuned import LOOP as found
        case "sweep_answer":
            from ..sweeps.answers import ANSWER as found
        case _:
            return _schema_of_measurements(name)
    return found


def _schema_of_measurements(name: str) -> Schema[Any]:
    found: Schema[Any]
    match name:
        case "links":
            from ..profiler.links.samples import LINKS as found
        case "profile":
            from ..profiler.profile import PROFILE as found
        case "device":
            from ..profiler.learned.device import DEVICE as found
        case "predictor":
            from ..profiler.learned.predictors import CARD as found
        case "measurement":
            from ..executor.tuning.result import MEASUREMENT as found
        case "tuning":
            from ..executor.tuning.result import TUNING as found
        case "executions":
            from ..profiler.prediction.executions import EXECUTIONS as found
        case "interference":
            from ..profiler.slowdown.interference.ratios import INTERFERENCE as found
        case "contention":
            from ..profiler.slowdown.contention.result import CONTENTION as found
        case "chrome_trace":
            from ..executor.pipeline.trace_file import TRACE as found
        case "export":
            from ..executor.export.manifest import EXPORT as found
        case "analytic":
            from ..profiler.analytic.model import ANALYTIC as found
        case "paper_contention":
            from ..profiler.slowdown.contention.paper import PAPER as found
        case "trial":
            from ..executor.tuning.result import TRIAL as found
        case "timing":
            from ..profiler.records import TIMING as found
        case "operators":
            from ..profiler.records import OPERATORS as found
        case "hops":
            from ..profiler.hops import HOPS as found
        case _:
            raise AssertionError(name)
    return found
