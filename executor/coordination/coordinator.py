"""The coordinator: takes requests from any thread, and has units answer them by chunks."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from statistics import median
from time import monotonic_ns
from typing import TYPE_CHECKING, Any, Self

from ...formulations.coordination.expected import setting_of
from ...formulations.coordination.policy import Conduct, Policy, Waiting
from ...formulations.coordination.record import Record
from ...formulations.coordination.sessions import SessionChoice, loaded_within
from ...formulations.coordination.setting import Setting
from ...formulations.coordination.simulation import Dispatcher, Late
from ...formulations.coordination.times import SMOOTHING, NetworkTimes, Times, chunk_times
from ...formulations.costs import NetworkCosts
from ...formulations.errors import InvalidInputError, QueueFullError, RefusedRequestError
from ...formulations.hardware import Platform
from ...formulations.history import History
from ...formulations.validation import meant, shown
from ..engine import Engine, PlacementReceipt
from ..engines.registry import engines_on
from ..model import Model
from ..pipeline.feeding import check_inputs
from .held import Cannot, HeldNetwork, Offer, Routes, chain_of, hold, offer_of
from .loop import Loop, Outage
from .outstanding import CHUNKS, Place
from .registration import (
    Registered,
    Registration,
    admit,
    full_words,
    index_of,
    measured_times,
    not_unloaded,
    open_network,
)
from .requests import Accepted, Served, history_of
from .restarts import RESTARTS
from .tally import Fate, Statistics
from .workers import OwnWorkers, Workers

if TYPE_CHECKING:
    from numpy.typing import NDArray

_log = logging.getLogger(__name__)

QUEUE = 64
"""Most requests that are accepted and not answered, unless the user says otherwise."""

_RECENT_DECISIONS = 1000

CLOSE_PATIENCE_S = 10.0
"""How long what was accepted may take when a coordinator is closed, unless the user says otherwise."""


UNLOAD_PATIENCE_S = 60.0
"""How long requests of a model that is unloaded may take to be answered."""


class Coordinator:
    """Units that serve requests as they come, of this machine or of a cluster; a context manager.

    Every time a chunk ends or a request comes, the policy decides what runs next, in a thread of its own.
    Methods can be called from any thread.

    Parameters
    ----------
    platform
        The units; each has a worker process, or as many as it says (`workers`).
    engine
        Runs the chunks; on units that name another one, that does.
    policy
        Decides; one that names chunks (`Conduct.CHUNKS`).
    late
        What becomes of requests that cannot meet their deadline any more.
    queue
        Most requests that are accepted, or held, and not answered; further ones are refused.
    restarts
        How many times within a minute the worker of each unit may be started again; 0: never.
    smoothing
        Share of the last observation in an expected time.
    check
        Whether each chunk of a network is compared with the uncut network on each unit that can run it,
        when it is registered.
    sessions
        Which chunks of a network are loaded: those that its shortest ways have, or all. All are, too, for
        policies that may start any (`Policy.any_chunk`).
    session_bytes
        What the loaded sessions of one network may need together; None: no limit.
    workers
        Where the workers of the units are: on this machine, or on the devices of a cluster
        (`executor.cluster.serving.ClusterWorkers`).

    Attributes
    ----------
    opened_ns
        When it was opened, nanoseconds of the monotonic clock.

    Raises
    ------
    InvalidInputError
        The policy places requests whole, or a number is not valid.
    PlacementError, ExecutionError
        A worker could not be started.
    """

    def __init__(
        self,
        platform: Platform,
        engine: Engine,
        policy: Policy,
        *,
        late: Late = Late.KEEP,
        queue: int = QUEUE,
        restarts: int = RESTARTS,
        smoothing: float = SMOOTHING,
        check: bool = True,
        sessions: SessionChoice = SessionChoice.USEFUL,
        session_bytes: int | None = None,
        workers: Workers = OwnWorkers(),
    ) -> None:
        if policy.conduct is not Conduct.CHUNKS:
            raise InvalidInputError(
                f"policy {policy.name!r} places requests whole ({policy.conduct}), which is for simulations: "
                "on a device a unit runs one chunk at a time; take a policy that names chunks"
            )
        if not 1 <= queue <= 100_000:
            raise InvalidInputError(f"queue is {queue}, must be between 1 and 100000")
        if restarts < 0:
            raise InvalidInputError(f"restarts is {restarts}, must be at least 0")
        if session_bytes is not None and (sessions is SessionChoice.ALL or policy.any_chunk):
            why = f"policy {policy.name!r} needs all" if policy.any_chunk else "all are to be loaded"
            raise InvalidInputError(f"sessions may have {session_bytes:,} bytes of memory, but {why}")
        policy.live()
        self.platform = platform.by_worker()
        self._columns = platform.worker_units
        platform = self.platform
        self.policy = policy
        self._engine = engine
        self._queue = queue
        self._check = check
        self._sessions = sessions
        self._session_bytes = session_bytes
        self._lock = threading.Lock()
        self._registering = threading.Lock()
        self._registered: dict[str, Registered] = {}
        self._known: dict[str, Registration] = {}  # also of models that were unloaded
        self._receipts: list[PlacementReceipt] = []
        self._number = 0
        self._closing = False
        self.opened_ns = monotonic_ns()
        times = Times(platform.unit_names, smoothing=smoothing)
        self._loop = Loop(
            platform,
            Dispatcher(policy, times, exclusive=platform.exclusive, late=late, remembered=CHUNKS),
            workers,
            restarts=restarts,
            engines={each.name for each in engines_on(platform.units, engine).values()},
        )
        try:
            self._loop.ready()
        except BaseException:
            self.close(patience_s=0.0)
            raise

    def register(
        self,
        model: Model,
        name: str = "",
        *,
        deadline_us: int | None = None,
        costs: NetworkCosts | None = None,
        cannot: Cannot | None = None,
        borders: Collection[int] = (),
        routes: Routes = (),
        states: Mapping[str, str] | None = None,
    ) -> Registered:
        """Hold a model: open its chunks on the units that can run them, while others are served.

        One unit at a time is taken away for that, and, without costs, to measure its largest chunk.

        Parameters
        ----------
        model
            The model.
        name
            How it is asked for; empty: the name of its network.
        deadline_us
            By when after their arrival requests have to be done; None: no deadline.
        costs
            What its layers cost on the units, all workers of which are alike; None: measured.
        cannot
            By unit, rules about operators that it cannot run ("Resize", "ConvTranspose[stride>=4]"), besides
            those of the platform and what the costs say.
        borders
            Layers before which chunks may begin although the same units can run both sides.
        routes
            Chunks of a plan, which requests then take; empty: the policy chooses among all.
        states
            Of a recurrent model, by input that takes a state the output that gives the next one: a server
            hands them on, requests that are submitted here bring theirs.

        Raises
        ------
        InvalidInputError
            The name is taken, or what is given does not fit the model.
        LayerNotRunnableError
            No unit can run a layer.
        OutputMismatchError
            A chunk gives wrong numbers on a unit.
        ExecutionError
            A chunk cannot be prepared or opened.
        """
        name = name or model.network.name
        _check_deadline(deadline_us)
        with self._registering:
            if name in self._known:
                raise InvalidInputError(f"{name!r} is registered already; give the second one another name")
            found = self._open(
                Registration(
                    model=model,
                    name=name,
                    deadline_us=deadline_us,
                    costs=costs and costs.of_columns(self._columns),
                    cannot=cannot or {},
                    borders=borders,
                    routes=routes,
                    states=states or {},
                )
            )
        return found

    def _open(self, asked: Registration) -> Registered:
        chain = chain_of(asked.model, self.platform, asked.costs, asked.cannot)
        engines = engines_on(self.platform.units, self._engine)
        offer = offer_of(
            asked.model, chain, borders=asked.borders, routes=asked.routes, places=self.platform.places
        )
        network = index_of(self._loop, offer)
        if network is None or self._loop.networks[network].closed:
            known = chunk_times(chain, offer.sections) if asked.costs else None
            if network is not None:
                held = self._loop.networks[network].held
            else:
                held, known = self._hold(asked.model, tuple(engines.values()), offer, known)
            network, receipts = open_network(
                self._loop, self.platform, held, known, queue=self._queue, check=self._check, again=network
            )
            self._receipts += receipts
        found = Registered(
            name=asked.name,
            network=network,
            held=self._loop.networks[network].held,
            deadline_us=asked.deadline_us,
            states=asked.states,
            verification=self._loop.networks[network].verification,
        )
        self._loop.requests.tally.begin(asked.name)
        self._known[asked.name] = asked
        self._registered[asked.name] = found
        _log.debug("%s: %s", asked.name, found.sessions)
        return found

    def _hold(
        self, model: Model, engines: Sequence[Engine], offer: Offer, known: NetworkTimes | None
    ) -> tuple[HeldNetwork, NetworkTimes | None]:
        """Choose the sessions of a network, which takes times; return them, too, where they are known now."""
        every = self._sessions is SessionChoice.ALL or self.policy.any_chunk or offer.planned
        if every:
            return hold(model, engines, offer), known
        largest = offer.largest(model, self.platform).values()
        if known is None:
            if len(largest) == len(offer.bytes) and self._session_bytes is None:
                return hold(model, engines, offer), None
            known = measured_times(self._loop, self.platform, hold(model, engines, offer, [*largest]))
        loaded = loaded_within(known, offer.bytes, self._session_bytes)
        return hold(model, engines, offer, loaded=loaded), known

    def unload(self, name: str, *, patience_s: float = UNLOAD_PATIENCE_S) -> None:
        """Take no more requests of a model, answer those that were accepted, and free what it holds.

        A model that is unloaded already stays so. It is loaded again by `load`.

        Parameters
        ----------
        name
            Of the model.
        patience_s
            How long the answers may take.

        Raises
        ------
        InvalidInputError
            No such model.
        ExecutionError
            Requests were not answered in time; the model takes requests again.
        """
        with self._registering:
            self._registration(name)
            with self._lock:
                found = self._registered.pop(name, None)
            if found is None:
                return
            if any(other.network == found.network for other in self._registered.values()):
                return
            if not self._loop.requests.drained(found.network, patience_s):
                self._registered[name] = found
                raise not_unloaded(name, patience_s)
            self._loop.retire(found.network)

    def load(self, name: str) -> Registered:
        """Open a model again that was unloaded; one that is loaded stays as it is. Errors as for `register`.

        Parameters
        ----------
        name
            As it was registered.
        """
        with self._registering:
            asked = self._registration(name)
            return self._registered.get(name) or self._open(asked)

    def _registration(self, name: str) -> Registration:
        if name not in self._known:
            raise InvalidInputError(f"no model {shown(name)}; {meant(name, self._known)}")
        return self._known[name]

    @property
    def registered(self) -> Mapping[str, Registered]:
        """The models that are loaded, by the names that they are asked for by."""
        return dict(self._registered)

    @property
    def known(self) -> tuple[str, ...]:
        """The names of all models, also of those that are unloaded."""
        return tuple(self._known)

    @property
    def receipts(self) -> tuple[PlacementReceipt, ...]:
        """What was granted for each session that was opened at registration."""
        return tuple(self._receipts)

    def hold(self, name: str) -> Place:
        """Have a request count as one that waits, before it is submitted.

        Parameters
        ----------
        name
            Of its model.

        Returns
        -------
        Place
            What `submit` takes; a context manager, which gives it back unless it was submitted.

        Raises
        ------
        QueueFullError
            As many requests as are allowed wait for their answers.
        """
        place = self._loop.requests.hold(self._queue)
        if place is None:
            self._loop.requests.tally.count(name, Fate.REFUSED)
            raise QueueFullError(full_words(name, self._queue))
        return place

    def submit(
        self,
        name: str,
        inputs: Mapping[str, NDArray[Any]],
        *,
        deadline_us: int | None = None,
        priority: int = 0,
        expires: bool = False,
        places: Sequence[Place] = (),
        arrival_ns: int | None = None,
    ) -> Future[Served]:
        """Take a request, and return where its answer will be; it cannot be cancelled.

        Parameters
        ----------
        name
            Of the model.
        inputs
            By name; copied.
        deadline_us
            By when after its arrival it has to be done; None: as the model was registered.
        priority
            Requests of smaller numbers are decided about first.
        expires
            Whether it is dropped once it cannot meet its deadline, whatever `late` says.
        places
            Of the requests that it answers, where they were held before; they count as long as it does.
        arrival_ns
            When it arrived, nanoseconds of the monotonic clock: latency and lateness count from then. None:
            now.

        Raises
        ------
        InvalidInputError
            No such model, or the inputs do not fit it.
        QueueFullError
            As many requests as are allowed wait for their answers.
        RefusedRequestError
            The coordinator is closed, the model is unloaded, or no unit that is there can run it.
        """
        arrival_ns = monotonic_ns() if arrival_ns is None else arrival_ns
        known = self._registered.get(name)
        if known is None and name in self._known:
            raise _unloaded(name)
        if known is None:
            raise InvalidInputError(f"no model {shown(name)}; {meant(name, self._registered)}")
        if defects := check_inputs(known.held.model.inputs, inputs):
            raise InvalidInputError(f"a request of {name!r} cannot be run:", defects)
        _check_deadline(deadline_us)
        limit_us = known.deadline_us if deadline_us is None else deadline_us
        arrival_us = arrival_ns // 1000
        try:
            with self._lock:
                if self._registered.get(name) is not known:  # it was unloaded meanwhile
                    raise _unloaded(name)
                admit(self._loop, known, self._queue, is_open=self.is_open, places=places)
        except RefusedRequestError:
            self._loop.requests.tally.count(name, Fate.REFUSED)
            raise
        slots = self._loop.networks[known.network].slots
        slot = slots.take()
        slots.fill(slot, inputs)
        with self._lock:
            self._number += 1
            request = Accepted(
                name=name,
                waiting=Waiting(
                    self._number,
                    known.network,
                    list(self._known).index(name),
                    arrival_us,
                    None if limit_us is None else arrival_us + limit_us,
                    priority=priority,
                    expires=expires,
                ),
                slot=slot,
                arrival_ns=arrival_ns,
                future=Future(),
                counts=max(1, len(places)),
            )
            request.future.set_running_or_notify_cancel()
            self._loop.submit(request)
        return request.future

    def run(self, name: str, inputs: Mapping[str, NDArray[Any]], *, deadline_us: int | None = None) -> Served:
        """Take a request, wait for its answer and return it; parameters and errors as for `submit`.

        Raises
        ------
        DroppedRequestError
            It could not meet its deadline any more.
        ExecutionError
            An engine failed, or workers were lost, too often; or the coordinator was closed.
        """
        return self.submit(name, inputs, deadline_us=deadline_us).result()

    async def infer(
        self, name: str, inputs: Mapping[str, NDArray[Any]], *, deadline_us: int | None = None
    ) -> Served:
        """Do the same in an event loop; parameters and errors as for `run`."""
        return await asyncio.wrap_future(self.submit(name, inputs, deadline_us=deadline_us))

    def abandon(self, answer: Future[Served]) -> None:
        """Drop a request whose answer nobody waits for, unless a unit works on it; it then fails."""
        with suppress(RefusedRequestError):
            self._loop.call(lambda: self._loop.abandon(answer))

    def withdraw(self, unit: str, *, why: str = "withdrawn", finish: bool = False) -> None:
        """Take a unit away: what it runs is put back and runs elsewhere, if anywhere.

        Requests that only this unit can run wait until it is back.

        Parameters
        ----------
        unit
            Its name.
        why
            In words; it is given back for the same reason.
        finish
            Whether what it runs goes on to its end there: it rests from then on.

        Raises
        ------
        InvalidInputError
            There is no such unit.
        """
        self._loop.call(partial(self._loop.withdraw, self._workers(unit), why, finish=finish)).result()

    def restore(self, unit: str, *, why: str = "withdrawn") -> None:
        """Give a unit back that was taken away for this reason; it is probed, and then joins again.

        Raises
        ------
        InvalidInputError
            There is no such unit.
        """
        self._loop.call(partial(self._loop.restore, self._workers(unit), why)).result()

    def _workers(self, unit: str) -> list[int]:
        """Return the workers of a unit, all of which come and go together."""
        index, places = self.platform.index_of(unit), self.platform.places
        return [worker for worker, place in enumerate(places) if place == places[index]]

    def expect(self, demand: Sequence[float]) -> None:
        """Tell the policy how many requests of each network come, relative to each other (`Policy.begin`)."""
        self._loop.call(lambda: self._loop.dispatcher.prepare(demand)).result()

    def follow(self, routes: Mapping[str, Routes]) -> None:
        """Have a policy that adapts plans follow one.

        Parameters
        ----------
        routes
            By name of the model, the ways that its requests take in turn: chunks, which begin where it may
            be divided (`register(borders=...)`).

        Raises
        ------
        InvalidInputError
            A chunk ends where the model is not divided.
        """
        found: dict[int, list[tuple[tuple[int, int], ...]]] = {}
        for name, own in routes.items():
            known = self._registered[name]
            done = {section.stop: n for n, section in enumerate(known.held.sections, 1)}
            if any(part.stop not in done for parts in own for part in parts):
                raise InvalidInputError(f"{name!r} is not divided where the plan cuts it")
            found[known.network] = [
                tuple((done[part.stop], self.platform.index_of(part.unit)) for part in parts) for parts in own
            ]
        self._loop.call(lambda: self.policy.follow(found, self._loop.dispatcher.times)).result()

    def setting(self) -> Setting:
        """Return the units, and what the networks are expected to take on them now, for simulations.

        Each section of a network is one layer.
        """
        loop = self._loop
        names = [network.held.name for network in loop.networks]
        return loop.call(lambda: setting_of(self.platform, names, loop.dispatcher.times).ideal).result()

    def count_again(self, names: Iterable[str]) -> None:
        """Count requests of models from zero: those so far were of nobody who uses them.

        Parameters
        ----------
        names
            The models.
        """
        self._loop.requests.tally.restart(names)

    def statistics(self) -> Statistics:
        """Return what has happened so far."""
        loop = self._loop
        decisions_ns = list(loop.dispatcher.decisions_ns.copy())[-_RECENT_DECISIONS:]
        return Statistics(
            seconds=(monotonic_ns() - self.opened_ns) / 1e9,
            waiting=loop.requests.waiting,
            models=loop.requests.tally.models(),
            units=tuple(seat.counts(available=loop.dispatcher.available(seat.index)) for seat in loop.seats),
            decisions=loop.decisions,
            decision_us=median(decisions_ns) / 1000 if decisions_ns else None,
        )

    @property
    def pids(self) -> Mapping[str, int]:
        """Process number of the worker of each unit that has one."""
        return {seat.unit.name: seat.worker.pid for seat in self._loop.seats if seat.worker is not None}

    def history(self) -> History | None:
        """Return when the chunks of the last answered requests ran; None: there are none.

        Requests that took the same chunks on the same units are one stream.
        """
        served = self._loop.requests.tally.recent
        networks = {name: known.model.network.name for name, known in self._known.items()}
        return history_of(served, networks) if served else None

    def record(self) -> Record:
        """Return what happened to the last requests and to the units, as simulations return it.

        Times are microseconds since the coordinator was opened.
        """
        loop = self._loop
        return loop.requests.log.record(
            self.policy.name,
            units=self.platform.unit_names,
            networks=[network.held.name for network in loop.networks],
            applications=list(self._known),
            decisions_ns=loop.dispatcher.decisions_ns.copy(),
        )

    def close(self, *, patience_s: float = CLOSE_PATIENCE_S) -> tuple[str, ...]:
        """Take no more requests, answer those that were accepted, and free everything. Can be called twice.

        Parameters
        ----------
        patience_s
            How long that may take.

        Returns
        -------
        tuple of str
            The requests that could not be answered; their futures have an ExecutionError.
        """
        with self._lock:
            self._closing = True
        return self._loop.close(patience_s)

    @property
    def is_open(self) -> bool:
        """Whether it takes requests."""
        return not self._closing and self._loop.alive

    @property
    def outage(self) -> Outage | None:
        """Since when, and why, there is no unit left to serve with; None: there is one, or it is closed."""
        return self._loop.outage

    @property
    def alive(self) -> bool:
        """Whether it takes requests and has a unit, or expects one back soon."""
        return self.is_open and self.outage is None

    def can_serve(self, name: str) -> bool:
        """Return whether units that are there, or are expected back by themselves, can run a model."""
        known = self._registered.get(name)
        return known is not None and self.is_open and self._loop.can_serve(known.network)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _check_deadline(deadline_us: int | None) -> None:
    if deadline_us is not None and deadline_us < 1:
        raise InvalidInputError(f"deadline_us is {deadline_us}, must be at least 1")


def _unloaded(name: str) -> RefusedRequestError:
    return RefusedRequestError(f"a request of {name!r} is not taken: the model is unloaded")
