"""Serving: what the command line says of models, plans, deadlines and units, and the wait for the end."""

from __future__ import annotations

import math
import re
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...answers.words import microseconds
from ...api.coordinators import open_coordinator
from ...api.engines import resolve_engine
from ...api.execution import models_for
from ...api.models import in_batches, open_all, opening_notes
from ...api.problems import load_problem
from ...executor.coordination.coordinator import Coordinator
from ...executor.coordination.events import ControlFile, HotZone, ModelledHeat, Source, UnitWatch
from ...executor.coordination.tally import Fate, Statistics
from ...executor.machine.state import PowerMeter, power_source
from ...executor.model import Model
from ...executor.progress import Report
from ...files.plans import named_plan, problem_of_plan
from ...files.run_files import save_trace
from ...formulations.coordination.behaviour import Behaviour
from ...formulations.coordination.scenario import BEHAVIOUR
from ...formulations.coordination.sessions import SessionChoice
from ...formulations.deployment import Deployment
from ...formulations.errors import InvalidInputError, NothingLeftError
from ...formulations.files import load
from ...formulations.operation import operation_of
from ...formulations.problem import Problem
from ...question.service import Hosting, Service
from ...question.subjects import Machine, Opening
from ...serving.access import read_token
from ...serving.logs import LogHandler, told_as_json
from ...serving.server import Server
from ...solvers.coordination.policies import make_policy
from ..base.console import tell
from ..base.progress import StepLine
from ..options.cluster import ClusterChoice
from .measuring import platform_of

if TYPE_CHECKING:
    from ...executor.cluster.cluster import Cluster

_STATE = re.compile(r"([^=]+)=([^=]+)")
_WORKERS = re.compile(r"([^=]+)=(\d{1,4})", re.ASCII)
_CANNOT = re.compile(r"([^=]+)=(.+)")
_RULE = re.compile(r"[^,\[]+(?:\[[^\]]*\])?")
_LOOK_S = 1.0
_HOT = re.compile(r"([^=]+)=([^:]+):(\d+(?:\.\d+)?) ?C", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is served.

    `problem`, `plan`: where a plan is served: the problem it is for, and what runs.
    """

    models: Sequence[Model]
    problem: Problem | None = None
    plan: Deployment | None = None
    notes: tuple[str, ...] = ()  # what the user should know


def say(text: str) -> None:
    """Tell people something while it works."""
    if not told_as_json(text):
        tell(text)


def _place(said: Hosting) -> dict[str, Any]:
    """Return where a server listens and who may ask it, as `gapless.running.Server` takes it.

    Raises InvalidInputError: others can read a token, or a port is given with a socket.
    """
    if said.socket is not None and said.options("port"):
        raise InvalidInputError(f"--socket {said.socket} has no port; leave out --port")
    files = {"token": said.token_file, "admin_token": said.admin_token_file}
    files["metrics_token"] = said.metrics_token_file
    return {
        "host": said.host,
        "port": said.port,
        "path": said.socket,
        "grpc_port": said.grpc_port,
        "allow_hosts": said.allow_host,
        "most_bytes": said.max_body_bytes,
        **{name: None if file is None else read_token(file) for name, file in files.items()},
    }


@dataclass(frozen=True, slots=True)
class ClusterPlace:
    """A cluster that serves instead of this machine: which one, and what ends it."""

    choice: ClusterChoice
    stack: ExitStack

    @staticmethod
    def refuse(machine: Machine, service: Service) -> None:
        """Refuse what is about one machine."""
        stray = [*machine.options("device", "emulate", "precision"), *service.options("hot")]
        for option in stray:
            raise InvalidInputError(
                f"{option} is about this machine, and the devices of a cluster serve; "
                + (
                    "name those that are too hot in a file: --control"
                    if option == "--hot"
                    else "say it of its nodes, e.g. --local a=core0:50%, or choose among them: --units"
                )
            )

    def joined(self, report: Report) -> Cluster:
        """Start or join it until the stack ends."""
        return self.stack.enter_context(self.choice.joined(report))


def opened(
    find: Callable[[], Subject],
    machine: Machine,
    hosting: Hosting,
    service: Service,
    *,
    check: bool,
    cluster: ClusterPlace | None = None,
) -> tuple[Server, Subject]:
    """Take the address, open models on the chosen units, and serve them."""
    if cluster is not None:
        cluster.refuse(machine, service)
    policy, cannot, where = make_policy(service.policy), parse_cannot(service.cannot), _place(hosting)
    where["states"] = parse_states(service.state)
    where["max_delay_us"] = _delay_us(service)
    _refuse_sources(service)
    found: list[Subject] = []

    def open_models() -> Coordinator:
        asked = find()
        found.append(asked)
        engine = resolve_engine(machine.engine, *asked.models)
        own = asked.problem is None and cluster is None
        platform = platform_of(machine, engine.name) if own else None
        with StepLine() as line:
            return open_coordinator(
                asked.models,
                problem=asked.problem,
                plan=asked.plan,
                platform=platform,
                engine=engine,
                report=line.report,
                policy=policy,
                late=service.late,
                split=service.split,
                sessions=service.sessions or SessionChoice.USEFUL,
                session_bytes=service.session_memory_bytes,
                behaviour=behaviour_of(service),
                power_w=service.power,
                smoothing=service.smoothing,
                workers=parse_workers(service.workers),
                queue=service.queue,
                restarts=service.restarts,
                deadlines_us=service.deadline_us or {},
                cannot=cannot,
                check=check,
                cluster=None if cluster is None else cluster.joined(line.report),
                devices=machine.units if cluster is not None else (),
            )

    server = Server(open_models, **where)
    for note in opening_notes(found[0].models):
        say(f"note: {note}")
    for name, model in server.coordinator.registered.items():
        say(f"{name}: {model.numbers}")
        say(f"{name}: {model.sessions}")
    for note in _recurrent_notes(found[0], server.states):
        say(f"note: {note}")
    return server, found[0]


def _delay_us(service: Service) -> int | None:
    """Return how long a request waits for others, as `gapless.running.Server` takes it."""
    if service.max_batch is None and service.max_delay_s is not None:
        raise InvalidInputError("--max-delay is for batches; say how large they may be (--max-batch)")
    return None if service.max_batch is None else round(1e6 * (service.max_delay_s or 0.0))


def subject(
    names: Sequence[str],
    opening: Opening,
    problem: str | None,
    max_batch: int | None = None,
    *,
    about_units: Sequence[str] = (),
) -> Subject:
    """Return what the arguments name: models, in batches up to a size if there is one, or one plan.

    `about_units`: options about units of this machine; those of a problem or a plan are not chosen here.
    """
    plans = [name for name in names if name.endswith(".json") or Path(name).is_dir()]
    known_by = plans[0] if plans else problem
    if known_by is not None and about_units:
        raise InvalidInputError(
            f"{about_units[0]}: the units of {known_by} were chosen when it was profiled; leave it out, or "
            f"profile again (`gapless profile ... {about_units[0]} ...`)"
        )
    if not plans:
        known = None if problem is None else load_problem(problem)
        if max_batch is not None:
            sizes = [*(1 << bit for bit in range(max_batch.bit_length()) if 1 << bit < max_batch), max_batch]
            names, shapes = in_batches(names, opening.shape or {}, sizes)
            opening = replace(opening, shape=shapes)
        return Subject(models=open_all(names, opening), problem=known)
    if max_batch is not None:
        raise InvalidInputError(f"--max-batch: {plans[0]} is a plan, which is served as it is; name a model")
    if len(names) > 1:
        raise InvalidInputError(
            f"{plans[0]} is a plan, which is served alone; for several networks, plan them together "
            "(`gapless plan --workload`)"
        )
    named = named_plan(plans[0])
    known, notes = problem_of_plan(named)
    return Subject(
        models=list(models_for(known).values()),
        problem=known,
        plan=named.deployed(known),
        notes=(*named.notes, *notes),
    )


def _recurrent_notes(asked: Subject, states: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Say how often a recurrent model can answer, where a plan promises that its chunks overlap."""
    if asked.plan is None or asked.problem is None:
        return
    times_us = operation_of(asked.problem).chunk_us(asked.problem, asked.plan)
    for stream, chunks in zip(asked.plan.streams, times_us, strict=True):
        known_us = [time_us for time_us in chunks if time_us is not None]
        if stream.network in states and len(known_us) == len(chunks) > 1:
            yield (
                f"{stream.network!r} is recurrent: a request waits for the state of the one before. So a "
                f"sequence gets one answer in {microseconds(sum(known_us))} at best, not in "
                f"{microseconds(max(known_us))}; chunks overlap only for different sequences"
            )


def parse_states(texts: Sequence[str] | None) -> dict[str, dict[str, str]]:
    """Return states from texts such as "h=h_out" or "net/h=h_out", as `gapless.running.Server` takes them."""
    pairs = _parsed(texts, _STATE, "--state", "an input and an output, e.g. h=h_out")
    found = _each_once(pairs, "--state")
    return {"": found} if found else {}


def parse_workers(texts: Sequence[str]) -> dict[str, int]:
    """Return {unit: workers} from texts such as "npu=2"."""
    found = _parsed(texts, _WORKERS, "--workers", "a unit and a number, e.g. npu=2")
    return {unit: int(count) for unit, count in _each_once(found, "--workers").items()}


def parse_cannot(texts: Sequence[str] | None) -> dict[str, list[str]]:
    """Return {unit: rules}, all of a unit, from texts such as "core1=Softplus,ConvTranspose[stride>=4]"."""
    found: dict[str, list[str]] = {}
    for unit, rules in _parsed(texts, _CANNOT, "--cannot", "a unit and operators, e.g. core1=Softplus"):
        found.setdefault(unit, []).extend(rule.strip() for rule in _RULE.findall(rules))
    return found


def _each_once(pairs: Iterable[tuple[str, ...]], option: str) -> dict[str, str]:
    """Return pairs as a dictionary; raises InvalidInputError: a name is given twice."""
    found: dict[str, str] = {}
    for name, value in pairs:
        if name in found:
            raise InvalidInputError(f"{option} {name}={value}: {name!r} is given twice; give it once")
        found[name] = value
    return found


def behaviour_of(service: Service) -> Behaviour | None:
    """Return how the units behave, if a file says it."""
    return None if service.behaviour is None else load(service.behaviour, BEHAVIOUR)


def _refuse_sources(service: Service) -> None:
    """Raise InvalidInputError where what takes units away cannot come; before models are opened."""
    _zones_of(service)
    folder = Path(service.control or ".").parent
    if not folder.is_dir():
        raise InvalidInputError(
            f"--control is {str(service.control)!r}, but there is no folder {str(folder)!r}: "
            "make it, or name a file elsewhere"
        )


def _zones_of(service: Service) -> list[HotZone]:
    """Return zones such as "core1=thermal_zone0:85C"; raises InvalidInputError: also --rest without heat."""
    zones = _parsed(service.hot, _HOT, "--hot", "a unit, a zone and degrees, e.g. core1=thermal_zone0:85C")
    rest = service.rest_kelvin
    if rest is not None and not service.hot and not _heats(behaviour_of(service)):
        raise InvalidInputError("--rest needs a heat to stay below: give --hot, or --behaviour with heat")
    return [HotZone.of(unit, zone, float(limit), rest) for unit, zone, limit in zones]


def _heats(behaviour: Behaviour | None) -> bool:
    return behaviour is not None and any(unit.heat for unit in behaviour.units)


def _sources_of(service: Service, coordinator: Coordinator) -> list[Source]:
    """Return what takes units away: a file, zones, and models."""
    found: list[Source] = [] if service.control is None else [ControlFile(service.control)]
    found += _zones_of(service)
    behaviour = behaviour_of(service)
    if behaviour is not None and _heats(behaviour):
        found.append(ModelledHeat(coordinator, behaviour, service.rest_kelvin))
    return found


class Energy:
    """What serving takes: as the machine tells it, or else by the powers of its units, simulated.

    `metered`: whether this machine serves, so that what it tells counts.
    """

    def __init__(
        self, coordinator: Coordinator, behaviour: Behaviour | None, *, metered: bool = True
    ) -> None:
        self._coordinator = coordinator
        units = coordinator.platform
        self._behaviour = (behaviour or Behaviour(platform=units.name)).on(units)
        self._source = power_source() if metered else None
        self._unmeasured = (
            "neither RAPL nor hwmon tells it here" if metered else "devices do not tell what they take"
        )
        self._meter = None if self._source is None else PowerMeter(self._source)
        self.look()

    def look(self) -> None:
        """Read what the machine tells; now and then."""
        if self._meter is not None:
            self._meter.look()

    def words(self, seconds: float) -> str | None:
        """Return the energy and that of a request, and where it comes from; None: nothing is known."""
        statistics = self._coordinator.statistics()
        if self._source is not None and self._meter is not None and self._meter.watts is not None:
            joules: float | None = self._meter.watts * seconds
            how = f"measured by {self._source.name}: the whole machine"
        else:
            platform = self._coordinator.platform
            busy_us = dict.fromkeys((platform.unit_names[place] for place in platform.places), 0.0)
            for counts, place in zip(statistics.units, platform.places, strict=True):
                name = platform.unit_names[place]
                busy_us[name] = min(1e6 * seconds, busy_us[name] + counts.busy_us)
            energy_mj = self._behaviour.energy_mj(busy_us, 1e6 * seconds)
            joules = None if energy_mj is None else energy_mj / 1000
            how = f"simulated by the powers of the units; {self._unmeasured}"
        answered = statistics.total(Fate.ANSWERED) + statistics.total(Fate.LATE)
        if joules is None:
            return None
        each = f", {1000 * joules / answered:.1f} mJ for each request" if answered else ""
        return f"energy: {joules:.3g} J{each}; {how}"


def _parsed(
    texts: Sequence[str] | None, form: re.Pattern[str], option: str, expected: str
) -> Iterator[tuple[str, ...]]:
    for text in texts or ():
        found = form.fullmatch(text.strip())
        if found is None:
            raise InvalidInputError(f"{option} {text!r}: expected {expected}")
        yield tuple(part.strip() for part in found.groups())


def serve_until(
    server: Server,
    service: Service,
    *,
    trace: Path | None,
    log: LogHandler | None = None,
    metered: bool = True,
) -> tuple[Statistics, list[str]]:
    """Serve until Ctrl-C, SIGTERM or SIGHUP comes, or for some time; then answer what was accepted.

    `trace`: where a trace of the last requests goes; None: nowhere. `log`: what tells now and then how many
    messages it has left out. `metered`: whether what this machine tells of its power is that of the units.
    Returns what happened, and what the user should know.
    """
    seconds = service.seconds
    with ExitStack() as stack:
        stack.callback(server.close)
        stop = stack.enter_context(_stopped_by_signals())
        also = "" if server.grpc_port is None else f", gRPC at port {server.grpc_port}"
        say(f"{', '.join(server.coordinator.registered)} at {server.url}{also}; Ctrl-C stops")
        energy = Energy(server.coordinator, behaviour_of(service), metered=metered)
        sources = _sources_of(service, server.coordinator)
        watch = stack.enter_context(
            UnitWatch(server.coordinator, sources, report=lambda step: say(step.text))
        )
        began = time.monotonic()
        given_up = None
        while given_up is None and not stop(min(_LOOK_S, _left_s(seconds, began))):
            if _left_s(seconds, began) <= 0:
                break
            given_up = _nothing_left(server, service.give_up_s)
            energy.look()
            if log is not None:
                log.tell_left_out()
        served_s = time.monotonic() - began
        watch.close()
        unanswered = server.close()
        spent = energy.words(served_s)
        models = server.coordinator.registered
        notes = [f"{name}: {model.numbers}" for name, model in models.items() if not model.compared]
        notes += [f"{request} was not answered" for request in unanswered]
        notes += [] if spent is None else [spent]
        history = server.coordinator.history()
        if trace is not None:
            if history is None:
                notes.append(f"{trace} was not written: no request was answered")
            else:
                save_trace(history, trace)
                notes.append(f"wrote {trace}")
        if given_up is not None:
            raise NothingLeftError("; ".join([given_up, *notes]))
        return replace(server.coordinator.statistics(), seconds=served_s), notes


def _left_s(seconds: float | None, began: float) -> float:
    return math.inf if seconds is None else began + seconds - time.monotonic()


def _nothing_left(server: Server, give_up_s: float) -> str | None:
    """Say why serving ends now; None: it does not."""
    if not server.alive:
        return "the web server has ended; the log says why"
    outage = server.coordinator.outage
    if outage is None or give_up_s == math.inf:
        return None
    lasted_s = time.monotonic() - outage.since_s
    if lasted_s < give_up_s and not outage.for_good:
        return None
    words = "and none comes back" if outage.for_good else f"for {lasted_s:.0f} s (--give-up)"
    return f"no unit is left to serve with, {words}: {outage.why}; start it again when that is mended"


@contextmanager
def _stopped_by_signals() -> Iterator[Callable[[float | None], bool]]:
    """Yield what waits for a signal; after it requests are still answered, unless a second one comes."""
    stopped = threading.Event()
    kinds = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup has it ignored
        kinds.append(signal.SIGHUP)

    def stop(number: int, frame: object) -> None:
        if stopped.is_set():
            raise KeyboardInterrupt
        stopped.set()

    before = {kind: signal.signal(kind, stop) for kind in kinds}
    try:
        yield stopped.wait
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)
