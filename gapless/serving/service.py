"""What REST and gRPC share: the states of a server, its models, and how a request is served."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from enum import StrEnum
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from ..executor.coordination.coordinator import UNLOAD_PATIENCE_S, Coordinator
from ..executor.coordination.outstanding import Place
from ..executor.coordination.registration import Registered, not_unloaded
from ..executor.coordination.requests import Served
from ..executor.coordination.tally import Fate, ModelCounts, Statistics
from ..formulations.errors import (
    DroppedRequestError,
    GaplessError,
    InvalidInputError,
    QueueFullError,
    RefusedRequestError,
)
from ..formulations.hardware import Platform
from ..formulations.validation import shown
from ..version import __version__
from .batching import Batcher, variants_of, worthwhile
from .catalogue import Catalogue, Entry, State, split_version
from .messages import Refusal
from .parameters import DEFAULT_PRIORITY, PRIORITIES, Wishes, check_known
from .protocol import Interface
from .sequences import DRAIN_S, IDLE_S, LOOK_S, Sequences, States, check_states, states_by_model
from .tensors import DATATYPES, described, written

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..executor.model import TensorSpec

    Tensors = dict[str, NDArray[Any]]

NOT_OFFERED = {
    "systemsharedmemory": "shared memory with clients is not offered: send tensors in binary form",
    "cudasharedmemory": "shared memory with clients is not offered: send tensors in binary form",
    "trace": "requests are not traced on demand: `gapless serve --trace FILE` writes a trace in the end",
    "logging": "the log is not set by clients: `gapless serve --log-level LEVEL` sets it",
    "generate": "texts are not generated here: send tensors to .../infer",
    "generate_stream": "texts are not generated here: send tensors to .../infer",
}
"""What Triton's clients may ask for and get no answer to but this, by the word in the address."""

EXTENSIONS = (
    "binary_tensor_data",
    "model_configuration",
    "model_repository",
    "model_repository(unload_dependents)",
    "schedule_policy",
    "statistics",
)
"""What is offered beyond the protocol itself, by the names that Triton gives it."""

_PARTS = {
    "compute_input": "copied_in_ns",
    "compute_infer": "ran_ns",
    "compute_output": "copied_out_ns",
}
"""What Triton calls the parts of the time in which a unit works on a request, and what counts it here."""

_NOT_RUN = (Fate.DROPPED, Fate.LEFT, Fate.FAILED, Fate.REFUSED)

_CODES: tuple[tuple[type[Exception], int], ...] = (
    (QueueFullError, 429),
    (RefusedRequestError, 503),
    (DroppedRequestError, 503),
    (InvalidInputError, 400),
    (GaplessError, 500),
)
"""Status code of each kind of error; the first that fits counts."""


class Phase(StrEnum):
    """What a server is at."""

    STARTING = "starting"
    SERVING = "serving"
    STOPPING = "stopping"


def told(error: Exception) -> tuple[int, str]:
    """Return the code of an error, as HTTP has it, and its words."""
    if isinstance(error, Refusal):
        return error.code, str(error)
    code = next((code for kind, code in _CODES if isinstance(error, kind)), 500)
    return code, str(error) if isinstance(error, GaplessError) else f"{type(error).__name__}: {error}"


class Service:
    """The models of a server; without a coordinator it is starting, and says so."""

    def __init__(self, coordinator: Coordinator | None = None) -> None:
        self.phase = Phase.STARTING
        self._coordinator: Coordinator | None = None
        self._catalogue: Catalogue | None = None
        self._interfaces: dict[str, tuple[Registered, Interface]] = {}
        self._sequences: dict[str, Sequences] = {}
        self._batchers: dict[str, Batcher] = {}
        self.batches: dict[str, tuple[str, int]] = {}  # by name, of which model each batch is, and how large
        self._steering = ThreadPoolExecutor(
            1, "gapless models"
        )  # loads may take minutes; answers do not wait
        if coordinator is not None:
            self.begin(coordinator)

    def begin(
        self,
        coordinator: Coordinator,
        states: Mapping[str, States] | None = None,
        *,
        max_delay_s: float | None = None,
    ) -> None:
        """Serve the models of a coordinator from now on.

        `states`: by model, what recurrent ones keep, besides what the coordinator knows. `max_delay_s`: how
        long a request may wait for others to be put together with, where there are batches ("net*4" of
        "net") that pay; None: it never does.
        """
        models = coordinator.registered
        given = [(name, model.states) for name, model in models.items()]
        for name, pairs in states_by_model([*given, *(states or {}).items()], models).items():
            model = models[name]
            check_states(model, pairs)
            self._sequences[name] = Sequences(name, pairs, model.held.model.inputs)
        self._coordinator = coordinator
        variants = {} if max_delay_s is None else variants_of(coordinator.registered)
        for name, sizes in variants.items():
            if name in self._sequences:
                raise InvalidInputError(
                    f"{name!r} keeps states (--state): it cannot run in batches (--max-batch)"
                )
            found = worthwhile(coordinator, name, sizes)
            coordinator.count_again([name, *sizes.values()])  # nobody has asked for what was measured
            self.batches |= {key: (name, size) for size, key in sizes.items()}
            if len(found.used) == 1:
                continue  # to gather requests would only keep them from units that become free
            self._batchers[name] = Batcher(
                found.used,
                self._run,
                delay_s=max_delay_s or 0.0,
                units=len(coordinator.platform.units),
                deadline_us=coordinator.registered[name].deadline_us,
                took_us={size: size * each_us for size, each_us in found.each_us.items()},
            )
        self._catalogue = Catalogue(coordinator, {name: tuple(s.values()) for name, s in variants.items()})
        self.phase = Phase.SERVING

    @property
    def states(self) -> Mapping[str, States]:
        """By recurrent model, what it keeps."""
        return {name: sequences.states for name, sequences in self._sequences.items()}

    def stop(self, patience_s: float = 0.0) -> None:
        """Take no more requests; those of open sequences until these end, or as long as that may take.

        Called in another thread than that of the requests, which goes on.
        """
        self.phase, until_s = Phase.STOPPING, monotonic() + patience_s
        with ExitStack() as stack:
            for sequences in self._sequences.values():
                stack.callback(sequences.forget)
                stack.enter_context(sequences.closing())
            while monotonic() < until_s and any(each.any_open for each in self._sequences.values()):
                sleep(LOOK_S)

    @property
    def coordinator(self) -> Coordinator:
        """Who serves; raises Refusal while models are opened."""
        if self._coordinator is None:
            raise Refusal(503, "the server is starting: its models are being opened; try again later")
        return self._coordinator

    @property
    def catalogue(self) -> Catalogue:
        """Its models; raises Refusal while they are opened."""
        if self._catalogue is None:
            raise Refusal(503, "the server is starting: its models are being opened; try again later")
        return self._catalogue

    @property
    def live(self) -> bool:
        """Whether it should be left alone: it starts, serves, or ends what it has begun."""
        return self._coordinator is None or self._coordinator.alive

    @property
    def ready(self) -> bool:
        """Whether all models that are not unloaded take requests."""
        if self.phase is not Phase.SERVING or self._coordinator is None or not self._coordinator.alive:
            return False
        loading = any(entry.state is State.LOADING for entry in self.catalogue.entries())
        return not loading and all(map(self._coordinator.can_serve, self._coordinator.registered))

    def model_ready(self, name: str, version: str = "") -> bool:
        """Return whether a model takes requests and a unit is there that can run it."""
        found, _ = self.catalogue.find(name, version)
        return self.phase is Phase.SERVING and self.coordinator.can_serve(found.name)

    def takes(self, whom: str) -> bool | None:
        """Return whether a model, as NAME or NAME:VERSION, takes requests; None: there is no such model."""
        name, version = split_version(whom)
        try:
            return self.model_ready(name, version if name != whom else "")
        except Refusal as refusal:
            return None if refusal.code == 404 else False

    def server_metadata(self) -> dict[str, Any]:
        """Return who serves, and which extensions of the protocol."""
        return {"name": "gapless", "version": __version__, "extensions": list(EXTENSIONS)}

    def model_metadata(self, name: str, version: str = "") -> dict[str, Any]:
        """Return what a model takes and gives."""
        found, _ = self.catalogue.find(name, version)
        return _metadata(found, self.interface(found), self.catalogue.versions(name))

    def model_config(self, name: str, version: str = "") -> dict[str, Any]:
        """Return how a model is served, in the form of Triton's configurations."""
        found, _ = self.catalogue.find(name, version)
        told = _configuration(found, self.interface(found), self.coordinator.platform)
        if (sequences := self._sequences.get(found.name)) is not None:
            del told["dynamic_batching"]  # Triton has one or the other
            told["sequence_batching"] = _sequence_batching(found, sequences.states)
        elif (batcher := self._batchers.get(found.name)) is not None:
            told["dynamic_batching"] |= {
                "preferred_batch_size": [size for size in batcher.sizes if size > 1],
                "max_queue_delay_microseconds": round(1e6 * batcher.delay_s),
            }
        return told

    def statistics(self, name: str = "", version: str = "") -> dict[str, Any]:
        """Return what requests of one model, or of all, took so far, in the form of Triton's statistics."""
        if version and not name:
            raise Refusal(400, "the version of a model is given without its name")
        if name:
            self.catalogue.find(name, version)
        counts = {counted.name: counted for counted in self.counted().models}
        chosen = [
            entry
            for entry in self.catalogue.entries()
            if entry.state is State.READY and name in ("", entry.name) and version in ("", entry.version)
        ]
        told = [_statistics(each, counts[each.key], self._batch_counts(each, counts)) for each in chosen]
        return {"model_stats": told}

    def counted(self) -> Statistics:
        """Return what has happened so far; requests count once, also if a batch failed to answer them."""
        found = self.coordinator.statistics()
        return replace(found, models=tuple(map(self._requests_of, found.models)))

    def _requests_of(self, counts: ModelCounts) -> ModelCounts:
        batcher = self._batchers.get(counts.name)
        if batcher is None and counts.name not in self.batches:
            return counts
        fates = {str(fate): 0 if batcher is None else batcher.fates[fate] for fate in _NOT_RUN}
        spent = replace(counts.spent, failed_ns=0 if batcher is None else batcher.failed_ns)
        return replace(counts, fates={**counts.fates, **fates}, spent=spent)

    def index(self, *, ready: bool) -> list[dict[str, Any]]:
        """Return all models and whether they are loaded; `ready`: only those that are."""
        return [
            {
                "name": entry.name,
                "version": entry.version,
                "state": str(entry.state),
                **({"reason": entry.reason} if entry.reason else {}),
            }
            for entry in self.catalogue.entries()
            if not ready or entry.state is State.READY
        ]

    async def load(self, name: str, parameters: Mapping[str, Any]) -> None:
        """Load all versions of a model, as they were given at the start."""
        for given in parameters:
            raise Refusal(
                501,
                f"parameter {shown(given)}: a model is loaded as it was given at the start, with no other "
                "files or configuration; start a server with those",
            )
        await self._steered(self.catalogue.load, name)

    async def unload(self, name: str, parameters: Mapping[str, Any]) -> None:
        """Unload all versions of a model when what was accepted is answered, and sequences have ended."""
        check_known(parameters, ("unload_dependents",), "parameter")
        value = parameters.get("unload_dependents", False)
        if not isinstance(value, bool):  # no model depends on another one here: either value is right
            raise InvalidInputError(f"parameter unload_dependents is {written(value)}, must be true or false")
        recurrent = [self._sequences[key] for key in self.catalogue.keys(name) if key in self._sequences]
        with ExitStack() as stack:
            for sequences in recurrent:
                stack.enter_context(sequences.closing())
            for key in self.catalogue.keys(name):
                stack.enter_context(self.catalogue.shown(key, State.UNLOADING))
            try:
                async with asyncio.timeout(UNLOAD_PATIENCE_S):
                    for key in self.catalogue.keys(name):
                        if (batcher := self._batchers.get(key)) is not None:
                            await batcher.drained()
            except TimeoutError:
                raise not_unloaded(name, UNLOAD_PATIENCE_S) from None
            await asyncio.gather(*(sequences.ended(DRAIN_S) for sequences in recurrent))
            await self._steered(self.catalogue.unload, name)
            for sequences in recurrent:
                sequences.forget()

    async def _steered(self, change: Callable[[str], None], name: str) -> None:
        await asyncio.get_running_loop().run_in_executor(self._steering, change, name)

    def accepting(self, name: str, version: str = "") -> tuple[Registered, Interface]:
        """Return a model for a request, and what that may name; raises Refusal: none are taken."""
        ending = [key for key, sequences in self._sequences.items() if sequences.ending]
        found, _ = self.catalogue.find(name, version, leaving=ending)
        if self.phase is Phase.STOPPING and found.name not in ending:
            raise Refusal(503, "the server is stopping")
        return found, self.interface(found)

    def interface(self, model: Registered) -> Interface:
        """Return what requests of a model may name."""
        known = self._interfaces.get(model.name)
        if known is None or known[0] is not model:
            sequences = self._sequences.get(model.name)
            states = {} if sequences is None else sequences.states
            known = self._interfaces[model.name] = model, _interface_of(model, states)
        return known[1]

    async def served(
        self, model: Registered, inputs: Tensors, wishes: Wishes, copied: Callable[[], None]
    ) -> Served:
        """Return the answer to a request; `inputs` is emptied, and `copied` called, when they are copied."""
        batcher, sequences = self._batchers.get(model.name), self._sequences.get(model.name)
        try:
            held = self.coordinator.hold(model.name)
        except QueueFullError:
            if batcher is not None:
                batcher.fates[Fate.REFUSED] += 1
            raise
        with held as place:
            if batcher is not None:
                return await batcher.served(inputs, wishes, place, copied)
            if sequences is None:
                return await self._run(model.name, inputs, wishes, [place], copied)
            async with sequences.turn(wishes) as turn:
                inputs |= turn.before
                found = await self._run(model.name, inputs, wishes, [place], copied)
                turn.after = {taken: found.outputs[given] for taken, given in sequences.states.items()}
            return found

    def _batch_counts(self, entry: Entry, counts: Mapping[str, ModelCounts]) -> dict[int, ModelCounts]:
        return {size: counts[key] for key, (base, size) in self.batches.items() if base == entry.key}

    async def _run(
        self,
        key: str,
        inputs: Tensors,
        wishes: Wishes,
        places: Sequence[Place],
        copied: Callable[[], None] = lambda: None,
    ) -> Served:
        answer = self.coordinator.submit(
            key,
            inputs,
            deadline_us=wishes.deadline_us,
            priority=wishes.priority,
            expires=wishes.expires,
            places=places,
            arrival_ns=wishes.arrival_ns,
        )
        inputs.clear()
        copied()
        try:
            return await asyncio.wrap_future(answer)
        except asyncio.CancelledError:  # nobody waits any more: it is dropped, unless it runs
            self.coordinator.abandon(answer)
            raise


def _interface_of(model: Registered, states: States) -> Interface:
    """Return what requests of a model may name; states are kept by the server."""
    held = model.held.model
    name, version = split_version(model.name)
    return Interface(
        model=name,
        version=version,
        inputs=tuple(spec for spec in held.inputs if spec.name not in states),
        outputs=tuple(spec.name for spec in held.outputs if spec.name not in states.values()),
        recurrent=bool(states),
    )


def _metadata(model: Registered, interface: Interface, versions: tuple[str, ...]) -> dict[str, Any]:
    """Return what a model takes and gives."""
    return {
        "name": interface.model,
        "versions": list(versions),
        "platform": "gapless",
        "inputs": described(interface.inputs),
        "outputs": described(_outputs(model, interface)),
        "parameters": {"compared": model.compared, "numbers": model.numbers},
    }


def _configuration(model: Registered, interface: Interface, platform: Platform) -> dict[str, Any]:
    """Return how a model is served, in the fields of Triton's `ModelConfig` that have a meaning here."""
    parameters = {"compared": "yes" if model.compared else "no", "numbers": model.numbers}
    if model.deadline_us is not None:
        parameters["deadline_us"] = str(model.deadline_us)
    return {
        "name": interface.model,
        "platform": "gapless",
        "backend": "gapless",
        "version_policy": {"all": {}},
        "max_batch_size": 0,
        "input": [{"name": spec.name, **_typed(spec)} for spec in interface.inputs],
        "output": [{"name": spec.name, **_typed(spec)} for spec in _outputs(model, interface)],
        "instance_group": [
            {"name": unit.name, "kind": "KIND_CPU" if unit.cores else "KIND_AUTO", "count": 1}
            for unit in platform.units
        ],
        "dynamic_batching": {"priority_levels": PRIORITIES, "default_priority_level": DEFAULT_PRIORITY},
        "parameters": {key: {"string_value": value} for key, value in parameters.items()},
    }


def _sequence_batching(model: Registered, states: States) -> dict[str, Any]:
    inputs = {spec.name: spec for spec in model.held.model.inputs}
    kept = [
        {"input_name": taken, "output_name": given, **_typed(inputs[taken])}
        for taken, given in states.items()
    ]
    return {"max_sequence_idle_microseconds": round(1e6 * IDLE_S), "state": kept}


def _statistics(entry: Entry, alone: ModelCounts, batches: Mapping[int, ModelCounts]) -> dict[str, Any]:
    """Return what requests of a model took, in the form of Triton's statistics.

    Copies of tensors into and out of engines count as compute_input and compute_output, as they do there;
    the time in which a request waits for units, also between two of them, as queue. A batch counts for each
    of its requests. `batches`: by size, the same counts of batches.
    """
    by_size = {1: alone, **batches}
    total = dict.fromkeys(("success", "fail", "queue", *_PARTS, "cache_hit", "cache_miss"), (0, 0))
    sizes = []
    for size, counts in sorted(by_size.items()):
        spent = counts.spent
        taken = {part: (spent.answers, getattr(spent, of)) for part, of in _PARTS.items()}
        failed = sum(counts.fates[fate] for fate in _NOT_RUN)
        own = {
            "success": (spent.answers, round(1000 * counts.total_us)),
            "fail": (failed, spent.failed_ns),
            "queue": (spent.answers, spent.waited_ns),
            **taken,
        }
        for part, (count, ns) in own.items():
            total[part] = total[part][0] + size * count, total[part][1] + size * ns
        if spent.answers:
            sizes.append({"batch_size": size, **{part: _duration(*each) for part, each in taken.items()}})
    return {
        "name": entry.name,
        "version": entry.version,
        "last_inference": max(counts.last_ms for counts in by_size.values()),
        "inference_count": sum(size * counts.spent.answers for size, counts in by_size.items()),
        "execution_count": sum(counts.spent.answers for counts in by_size.values()),
        "inference_stats": {part: _duration(*each) for part, each in total.items()},
        "batch_stats": sizes,
    }


def _duration(count: int, ns: int) -> dict[str, int]:
    return {"count": count, "ns": ns}


def _outputs(model: Registered, interface: Interface) -> list[TensorSpec]:
    return [spec for spec in model.held.model.outputs if spec.name in interface.outputs]


def _typed(spec: TensorSpec) -> dict[str, Any]:
    return {"data_type": f"TYPE_{DATATYPES[spec.dtype]}", "dims": list(spec.shape)}
