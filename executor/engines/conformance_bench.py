"""The parent's end of a process in which an engine is tried: questions, and what must hold of each answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from ...formulations import errors
from ...formulations.errors import ExecutionError, PlacementError, UnitLostError
from ...formulations.hardware import EngineSettings, ProcessingUnit, UnitKind
from ..engine import Engine, PlacementReceipt, parse_receipt
from ..machine.cores import usable_cores
from ..model import tolerance
from ..workers import Message, Worker, unit_data
from .conformance_samples import FIRST, WORK

LIMIT_S = 300.0
"""How long an engine may take for one question."""

_PATIENCE = 12
"""How often to look for threads that a receipt promises: on a busy machine some have nothing to do yet."""

_MOST_IDLE, _LEAST_BUSY = 0.05, 0.01
"""A thread has worked above the first share of all time on processors, and idled below the second."""


@dataclass(kw_only=True)
class Bench:
    """A worker on one unit that tries an engine."""

    unit: ProcessingUnit
    content: str  # kind of content of the samples
    worker: Worker  # the process
    _receipt: PlacementReceipt | None = field(default=None, init=False)

    @classmethod
    @contextmanager
    def on(cls, engine: str, content: str, unit: ProcessingUnit) -> Iterator[Bench]:
        """Yield a new one."""
        from .conformance_worker import serve

        with Worker(unit, serve, {"engine": engine, "content": content}) as worker:
            yield cls(unit=unit, content=content, worker=worker)

    @property
    def first(self) -> str:
        """Name of the sample that has to run."""
        return FIRST[self.content]

    @property
    def receipt(self) -> PlacementReceipt:
        """That of the session that is open."""
        assert self._receipt is not None, "no session is open"
        return self._receipt

    def ask(self, kind: str, **data: Any) -> Message:
        """Return the answer to a question: "done" or "refused"."""
        what = f"{kind} of {data.get('sample', data.get('bad', 'a piece'))!r} on unit {self.unit.name!r}"
        try:
            self.worker.send({"kind": kind, **data})
            answer = self.worker.receive(LIMIT_S)
        except UnitLostError as error:
            raise AssertionError(f"{what}: it took the process with it: {error}") from error
        assert answer is not None, f"{what}: no answer within {LIMIT_S:g} s"
        assert answer["kind"] != "broke", (
            f"{what}: {answer['type']}, where an error of gapless belongs: {answer['text']}"
        )
        return answer

    def done(self, kind: str, **data: Any) -> Message:
        """Return the answer to a question that cannot be refused."""
        answer = self.ask(kind, **data)
        assert answer["kind"] == "done", f"{kind} of {data.get('sample')!r}: {answer['text']}"
        return answer

    def opened(self, sample: str, unit: ProcessingUnit | None = None) -> Message | None:
        """Open a session; return None, or the refusal."""
        answer = self.ask("prepare", sample=sample)
        if answer["kind"] == "done":
            answer = self.ask("open", artifact=answer["artifact"], unit=unit_data(unit or self.unit))
        if answer["kind"] != "done":
            return answer
        self._receipt = parse_receipt(answer["receipt"])
        return None

    def need(self, sample: str) -> None:
        """Open a session on a sample that has to run."""
        problem = self.opened(sample)
        assert problem is None, f"it cannot run the sample {sample!r}: {problem and problem['text']}"

    def check_run(self, sample: str, seed: int) -> None:
        """Require right numbers of a run."""
        for agrees, words in self.done("run", sample=sample, seed=seed)["differences"]:
            assert agrees, f"wrong numbers on unit {self.unit.name!r}: sample {sample!r}, {words}"

    def check_error(self, what: str, sample: str, error: float) -> None:
        """Require that an error is within what the precision of the unit promises."""
        allowed = tolerance(self.unit.engine.precision.value)
        assert error <= allowed, (
            f"wrong numbers on unit {self.unit.name!r}: {what} of the sample {sample!r} is off by "
            f"{error:.1e} of its scale, allowed is {allowed:g}"
        )

    def check_refusal(
        self, name: str, answer: Message, *, kind: type[ExecutionError] = ExecutionError
    ) -> None:
        """Require that an answer is an error of a kind that names a piece."""
        assert issubclass(getattr(errors, answer["type"]), kind), (
            f"{name!r} is refused by {answer['type']}, must be {kind.__name__} or below it: {answer['text']}"
        )
        assert name in answer["text"], f"the refusal of {name!r} does not name it: {answer['text']}"

    def check_refused(self, unit: ProcessingUnit, what: str) -> None:
        """Require that a unit that is not there is refused."""
        problem = self.opened(self.first, unit)
        asked = {"backend": unit.engine.backend, "cores": unit.cores}[what]
        assert problem is not None, (
            f"it opens a session with {what} {asked}, which is not there (this process has cores "
            f"{self.unit.cores or usable_cores()}); its receipt says backend "
            f"{self.receipt.granted_backend!r}, cores {self.receipt.granted_cores}: "
            "a mismatch must raise PlacementError"
        )
        assert problem["type"] == PlacementError.__name__, (
            f"{what} {asked} is not there, and refused by {problem['type']}, must be PlacementError: "
            f"{problem['text']}"
        )

    def check_bad(self, what: str, name: str) -> None:
        """Require that a piece that nobody can run is refused by the time it has run."""
        answer = self.ask("prepare", bad=what)
        if answer["kind"] == "done":
            answer = self.ask("open", artifact=answer["artifact"], unit=unit_data(self.unit))
            if answer["kind"] == "done":
                answer = self.ask("run", bad=what)
        assert answer["kind"] == "refused", f"it runs a piece with {what} without a word"
        self.check_refusal(name, answer)

    def check_asked(self, unit: ProcessingUnit) -> None:
        """Require that the receipt says what was asked, and that something else was not let pass."""
        receipt = self.receipt
        wanted = {
            "unit": unit.name,
            "asked_backend": unit.engine.backend,
            "asked_threads": unit.threads,
            "asked_cores": unit.cores,
            "precision": unit.engine.precision.value,
        }
        if self.content == "callable":  # what is asked of functions is the variant for the kind of the unit
            del wanted["asked_backend"]
        for name, value in wanted.items():
            found = getattr(receipt, name)
            assert found == value, f"the receipt says {name} {found!r}, but {value!r} was asked"
        assert not receipt.mismatches, f"it opened, but its receipt says {'; '.join(receipt.mismatches)}"
        assert receipt.engine.strip(), "the receipt does not name the engine"

    def check_kernel(self) -> str:
        """Require that the kernel sees what the receipt says of cores and threads; return what it saw."""
        receipt, total = self.receipt, dict[str, int]()
        work: Message = {}
        for _ in range(_PATIENCE):
            work = self.done("work", sample=WORK, seconds=_WORK_S)
            for thread, busy_ns in work["busy_ns"].items():
                total[thread] = total.get(thread, 0) + busy_ns
            if _threads_above(_LEAST_BUSY, total) >= (receipt.granted_threads or 1):
                break
        for cores in map(tuple, work["cores"]):
            assert receipt.granted_cores in (None, cores), (
                f"the receipt says cores {receipt.granted_cores}, but the kernel lets a thread of the engine "
                f"run on {cores}"
            )
        sure, perhaps = _threads_above(_MOST_IDLE, total), _threads_above(_LEAST_BUSY, total)
        granted = receipt.granted_threads
        if granted is not None and total:
            assert sure <= granted, f"the receipt says {granted} threads, but {sure} threads computed"
            assert perhaps >= granted, f"the receipt says {granted} threads, but only {perhaps} computed"
        return f"{receipt.granted_backend}, {granted or '?'} threads, {sure or '?'} seen at work"


def tried_units(engine: Engine) -> tuple[ProcessingUnit, ...]:
    """Return where an engine is tried: on one core, on all cores, on its other backends."""
    cores = usable_cores()
    found = []
    for backend in engine.backends():
        settings = EngineSettings(backend=backend)
        if backend != "cpu":
            found.append(ProcessingUnit(name=backend, kind=UnitKind.GPU, engine=settings))
            continue
        one = ProcessingUnit(name="one", kind=UnitKind.CPU, cores=cores[:1], threads=1, engine=settings)
        found.append(one)
        if len(cores) > 1:
            found.append(replace(one, name="all", cores=cores, threads=len(cores)))
    return tuple(found)


def _threads_above(share: float, busy_ns: Mapping[str, int]) -> int:
    return sum(ns >= share * sum(busy_ns.values()) and ns > 0 for ns in busy_ns.values())
