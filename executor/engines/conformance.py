"""The tests that every engine must pass; the author of an engine subclasses `EngineConformance`.

    from gapless.testing import EngineConformance

    class TestMyEngine(EngineConformance):
        def make_engine(self):
            return MyEngine()

or says `gapless device bench --engine my.py:Mine --check`. The engine runs in worker processes that are
pinned to the cores of a unit, as in a pipeline, on small pieces whose right numbers numpy knows. What it
says of itself is compared with what the kernel says: on which cores its threads may run, and which did. A
test that could not try anything fails. Plain asserts and method names that pytest collects; nothing here
imports pytest.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from ...formulations import errors
from ...formulations.errors import (
    EngineUnavailableError,
    ExecutionError,
    GaplessError,
    PlacementError,
    UnitLostError,
)
from ...formulations.hardware import EngineSettings, Precision, ProcessingUnit, UnitKind
from ..engine import Engine, PlacementReceipt, parse_receipt
from ..machine.cores import usable_cores
from ..model import Model, tolerance
from ..workers import Message, Worker, unit_data
from .bench import BenchEffort, bench_engine
from .conformance_samples import FIRST, WORK, bad_pieces, samples
from .registry import get_engine

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

        with Worker(unit, serve, {"engine": engine, "content": content}, engines=[engine]) as worker:
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


NOWHERE = "no-such-backend"
ACCELERATORS = ("gpu", "cuda", "opencl", "vulkan", "npu", "tensorrt")
"""Backends that must be refused where the engine does not list them."""

WARM_UP_RUNS = 1_000
MOST_GROWTH_BYTES = 4 << 20
"""How much a process may grow over all runs: one output of some kilobytes kept each time is far more."""

REOPENED = 40
MOST_GROWTH_A_SESSION_BYTES = 256 << 10

_FEW = 4
"""How many more files or threads are no leak."""

_SEEDS = range(3)
_WORK_S = 0.3
_AS_BUSY = 0.5
_SHORT = BenchEffort(min_repetitions=2, min_seconds=0.0, warm_up_repetitions=1)


class EngineConformance:
    """What an engine promises by its protocol, as tests.

    Attributes
    ----------
    units
        Where it is tried. Empty: on one core, on all cores, and on each of its other backends.
    runs
        How often a session runs in the test for leaks.
    tried
        What the last test has exercised, in words.
    """

    units: tuple[ProcessingUnit, ...] = ()
    runs: int = 10_000
    tried: str = ""

    def make_engine(self) -> Engine:
        """Return the engine under test."""
        raise TypeError("a subclass of EngineConformance overrides make_engine")

    # Tests

    def test_it_is_found(self) -> None:
        """It says that it works here, and workers find it by its name."""
        engine = self.make_engine()
        found = engine.availability()
        assert found.ok, f"it is not available: {found.reason or 'and it does not say why'}"
        assert type(get_engine(engine.name)).__name__ == type(engine).__name__, (
            f"workers that look for its name {engine.name!r} find another engine"
        )
        backends = engine.backends()
        assert backends, "it has no backend that works here"
        assert "cpu" not in backends[1:], f"its backends are {', '.join(backends)}: cpu must be the first"
        kinds = self._kinds()
        self.tried = f"backends {', '.join(backends)}; runs {' and '.join(kinds)}"

    def test_numbers(self) -> None:
        """The numbers of every sample are right, on every unit, for inputs that differ."""
        runs, refused = 0, set()
        for bench in self._benches():
            for name in samples(bench.content):
                problem = bench.opened(name)
                if problem is None:
                    for seed in _SEEDS:
                        bench.check_run(name, seed)
                        runs += 1
                    continue
                assert name != FIRST[bench.content], f"it cannot run the sample {name!r}: {problem['text']}"
                bench.check_refusal(name, problem)
                refused.add(name)
        assert runs, "nothing was run"
        self.tried = f"{runs} runs" + (f"; refused: {', '.join(sorted(refused))}" if refused else "")

    def check_model(self, model: Model) -> None:
        """Require that the numbers of a whole model are right on every unit."""
        runs = 0
        for bench in self._benches():
            found = bench_engine(model, bench.unit, engine=self.make_engine().name, effort=_SHORT)
            assert found.worst_error is not None, f"nothing is known to be right of {model.network.name!r}"
            assert not found.wrong, f"wrong numbers on unit {bench.unit.name!r}: {found.words}"
            runs += 1
        self.tried = f"{model.network.name} on {runs} units"

    def test_receipts(self) -> None:
        """What a receipt says is what was asked, and what the kernel sees."""
        seen = []
        for bench in self._benches():
            bench.need(WORK)
            bench.check_asked(bench.unit)
            seen.append(f"{bench.unit.name}: {bench.check_kernel()}")
        assert seen, "no receipt was seen"
        self.tried = "; ".join(seen)

    def test_backends_are_not_pretended(self) -> None:
        """A backend beside the CPU gives other bits, or leaves the processor alone: it is not the CPU."""
        tried = 0
        on_cpu: dict[str, Message] = {}
        for bench in self._benches():
            bench.need(WORK)
            work = bench.done("work", sample=WORK, seconds=_WORK_S)
            if bench.unit.engine.backend == "cpu":
                on_cpu[bench.content] = work
                tried += 1
                continue
            tried += 1
            other = on_cpu.get(bench.content)
            pretends = (
                other is not None
                and other["digest"] == work["digest"]
                and _busy_ns(work) > _AS_BUSY * _busy_ns(other)
            )
            assert not pretends, (
                f"on unit {bench.unit.name!r} it says it runs on {bench.unit.engine.backend!r}, but gives "
                "the very bits of its CPU and keeps the processor as busy: it runs on the CPU"
            )
        assert tried, "nothing was run"
        self.tried = f"{tried} units"

    def test_units_that_are_not_there_are_refused(self) -> None:
        """Other backends, other cores, or more threads than there are: refused, or granted in truth."""
        tried = 0
        with self._first() as bench:
            absent = [name for name in ACCELERATORS if name not in self.make_engine().backends()]
            for backend in (NOWHERE, *absent):
                kind = UnitKind.OTHER if backend == NOWHERE else UnitKind.GPU
                settings = EngineSettings(backend=backend)
                bench.check_refused(ProcessingUnit(name="absent", kind=kind, engine=settings), "backend")
                tried += 1
            mine = bench.unit.cores
            if mine:
                others = tuple(core for core in usable_cores() if core not in mine) or (max(mine) + 1,)
                bench.check_refused(replace(bench.unit, name="elsewhere", cores=others[:1]), "cores")
                tried += 1
            if bench.unit.threads is not None:
                many = replace(bench.unit, name="many", threads=2 * len(usable_cores()) + 1)
                if bench.opened(bench.first, many) is None:
                    bench.check_asked(many)
                tried += 1
        assert tried > 1, "no absent unit was tried"
        self.tried = f"{tried} units"

    def test_what_cannot_run_is_refused(self) -> None:
        """Pieces that nobody can run, and files that are not there, give errors that name the piece."""
        tried = 0
        with self._first() as bench:
            for what, piece in bad_pieces(bench.content).items():
                bench.check_bad(what, piece.name)
                tried += 1
            artifact = bench.done("prepare", sample=bench.first)["artifact"]
            gone = {**artifact, "path": artifact["path"] + ".gone", "piece": "a piece without its file"}
            answer = bench.ask("open", artifact=gone, unit=unit_data(bench.unit))
            assert answer["kind"] == "refused", "it opens a file that is not there"
            bench.check_refusal(gone["piece"], answer)
            bench.need(bench.first)
            bench.check_run(bench.first, seed=0)
        assert tried, "nothing was refused"
        self.tried = f"{tried + 1} refusals"

    def test_copies(self) -> None:
        """Each run takes the inputs that were copied in last, and nobody shares memory with the caller."""
        tried = 0
        for bench in self._benches():
            for name in samples(bench.content):
                if name != WORK and bench.opened(name) is None:
                    _check_copies(bench, name, bench.done("copies", sample=name))
                    tried += 1
        assert tried, "nothing was copied"
        self.tried = f"{tried} samples"

    def test_precision(self) -> None:
        """Each precision that opens has numbers as right as it promises; high precision opens."""
        opened: list[str] = []
        with self._first() as bench:
            for precision in Precision:
                unit = replace(bench.unit, engine=replace(bench.unit.engine, precision=precision))
                problem = bench.opened(bench.first, unit)
                if problem is not None:
                    assert precision is not Precision.HIGH, f"it refuses high precision: {problem['text']}"
                    assert problem["type"] == PlacementError.__name__, problem["text"]
                    continue
                assert bench.receipt.precision == precision.value, (
                    f"asked for {precision.value} precision, the receipt says {bench.receipt.precision}"
                )
                for seed in _SEEDS:
                    bench.check_run(bench.first, seed)
                opened.append(precision.value)
        assert opened, "no precision was tried"
        self.tried = ", ".join(opened)

    def test_times_of_operators(self) -> None:
        """They are None, or times that name tensors; the session works afterwards."""
        with self._first() as bench:
            bench.need(WORK)
            answer = bench.done("operators", sample=WORK)
            bench.check_error("an output after that", WORK, answer["error"])
        times = answer["times"]
        self.tried = "none: chunks are measured instead" if times is None else f"{len(times)} operators"
        if times is not None:
            assert times, "it gives an empty list of times; None says that there are none"
            assert all(0 <= each["time_us"] < float("inf") for each in times), (
                "a time is negative or infinite"
            )
            made = {spec.name for spec in samples(bench.content)[WORK].piece.outputs}
            assert made & {each["output"] for each in times}, (
                f"no operator makes {' or '.join(made)}, but {', '.join(each['output'] for each in times)}"
            )

    def test_a_killed_worker(self) -> None:
        """A worker that is killed while it runs is a named error, and another one opens the piece again."""
        with self._first() as bench:
            bench.need(WORK)
            bench.worker.send({"kind": "work", "sample": WORK, "seconds": LIMIT_S})
            bench.worker.kill()
            try:
                bench.worker.receive(LIMIT_S)
            except UnitLostError as error:
                assert bench.unit.name in str(error)  # noqa: PT017 - nothing here imports pytest
            else:
                raise AssertionError("the end of its worker was not noticed")
        with self._first() as bench:
            bench.need(WORK)
            bench.check_run(WORK, seed=1)
        self.tried = "1 kill"

    def test_leaks(self) -> None:
        """Many runs, and many sessions, leave the process as large as it was."""
        with self._first() as bench:
            bench.need(bench.first)
            before = bench.done("many", sample=bench.first, runs=min(WARM_UP_RUNS, self.runs))
            after = bench.done("many", sample=bench.first, runs=self.runs)
            grown = after["rss_bytes"] - before["rss_bytes"]
            for held in (before, after):
                bench.check_error("the last output", bench.first, held["error"])
            _check_held(before, after, f"{self.runs:,} runs", MOST_GROWTH_BYTES)
            artifact = bench.done("prepare", sample=bench.first)["artifact"]
            asked = {"sample": bench.first, "artifact": artifact, "unit": unit_data(bench.unit)}
            before = bench.done("reopen", times=REOPENED // 4, **asked)
            after = bench.done("reopen", times=REOPENED, **asked)
            _check_held(before, after, f"{REOPENED} sessions", REOPENED * MOST_GROWTH_A_SESSION_BYTES)
        self.tried = f"{self.runs:,} runs (grown by {grown / 1024:,.0f} KiB), {REOPENED} sessions"

    # What is tried

    def _kinds(self) -> list[str]:
        kinds = [kind for kind in FIRST if self.make_engine().takes(kind)]
        assert kinds, f"it takes none of the kinds of content that there are samples of: {', '.join(FIRST)}"
        return kinds

    def _units(self) -> tuple[ProcessingUnit, ...]:
        return self.units or tried_units(self.make_engine())

    def _benches(self) -> Generator[Bench, None, None]:
        """Yield a worker on each unit that opens a sample; one at least there must be."""
        opened, refusals = 0, []
        for unit in self._units():
            for kind in self._kinds():
                with Bench.on(self.make_engine().name, kind, unit) as bench:
                    problem = bench.opened(bench.first)
                    if problem is None:
                        opened += 1
                        yield bench
                        continue
                    refusals.append(problem["text"])
                    assert problem["type"] == PlacementError.__name__, (
                        f"it opens nothing on unit {unit.name!r}: {problem['text']}"
                    )
        assert opened, f"it opens nothing on any unit: {'; '.join(refusals)}"

    @contextmanager
    def _first(self) -> Iterator[Bench]:
        """Yield a worker on the first unit that opens a sample."""
        with closing(self._benches()) as benches:
            yield next(benches)


def _busy_ns(work: Message) -> float:
    """Return the time on processors that one run took."""
    return float(sum(work["busy_ns"].values()) / work["runs"])


def _check_copies(bench: Bench, sample: str, facts: Message) -> None:
    of = f"sample {sample!r} on unit {bench.unit.name!r}"
    allowed = tolerance(bench.unit.engine.precision.value)
    assert facts["overwritten"] <= allowed or facts["as_overwritten"] > allowed, (
        f"{of}: it computes on the memory of the caller, which was overwritten after copy_in"
    )
    assert facts["new"] <= allowed or facts["new_as_old"] > allowed, (
        f"{of}: it ignores new inputs: the outputs are those of the inputs before"
    )
    assert not facts["changed"], f"{of}: it changes the arrays that are given to copy_in"
    assert not facts["aliased"], f"{of}: arrays that were filled by copy_out change with the next run"
    for what, key in (
        ("a run", "overwritten"),
        ("a run on new inputs", "new"),
        ("a second copy_out", "again"),
    ):
        bench.check_error(what, sample, facts[key])
    for index, error in enumerate(facts["repeats"], start=1):
        bench.check_error(f"run {index} on the same inputs", sample, error)
    if bench.unit.engine.backend == "cpu" and bench.unit.threads == 1:
        assert facts["same_bits"], f"{of}: runs on the same inputs give different bits"


def _check_held(before: Message, after: Message, what: str, most_bytes: int) -> None:
    grown = after["rss_bytes"] - before["rss_bytes"]
    assert grown <= most_bytes, (
        f"it leaks: after {what} the process is {grown / 2**20:.1f} MiB larger, "
        f"allowed are {most_bytes / 2**20:g}"
    )
    for kind in ("files", "threads"):
        more = after[kind] - before[kind]
        assert more <= _FEW, f"it leaks: after {what} there are {more} more {kind} ({after[kind]})"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConformanceCheck:
    """What came of one test."""

    name: str  # what was tested, in words
    problem: str | None  # what is wrong; None: it passed
    tried: str  # what was exercised


def check_engine(
    engine: str,
    *,
    units: tuple[ProcessingUnit, ...] = (),
    model: Model | None = None,
    report: Callable[[str, int, int], None] = lambda name, done, total: None,
) -> tuple[ConformanceCheck, ...]:
    """Put an engine to all tests of `EngineConformance`.

    `engine`: registry name, or "module:Class" or "file.py:Class". `units`: where; empty: as
    `EngineConformance.units` says. `model`: to be run, too; None: only the samples. `report`: told the name
    of each test before it begins, how many are done, and how many there are.
    """
    found = get_engine(engine)
    here = found.availability()
    if not here.ok:
        raise EngineUnavailableError(here.reason)

    def prepared() -> EngineConformance:
        tests = EngineConformance()
        tests.make_engine, tests.units = lambda: get_engine(engine), units  # type: ignore[method-assign]
        return tests

    names = [name for name in vars(EngineConformance) if name.startswith("test_")]
    parts: dict[str, Callable[[EngineConformance], None]] = {
        name.removeprefix("test_").replace("_", " "): getattr(EngineConformance, name) for name in names
    }
    if model is not None:
        parts[f"the model {model.network.name}"] = lambda tests: tests.check_model(model)
    checks = []
    for done, (name, part) in enumerate(parts.items()):
        report(name, done, len(parts))
        checks.append(_checked(name, part, prepared()))
    return tuple(checks)


def _checked(
    name: str, part: Callable[[EngineConformance], None], tests: EngineConformance
) -> ConformanceCheck:
    problem = None
    try:
        part(tests)
    except (AssertionError, GaplessError) as error:
        problem = str(error)
    return ConformanceCheck(name=name, problem=problem, tried=tests.tried)
