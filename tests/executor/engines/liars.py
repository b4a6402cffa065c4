"""Engines that are wrong in one way each, around one that is right."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gapless.executor.engine import Artifact, OperatorTime, PlacementReceipt, Session
from gapless.executor.engines.ort_engine import OrtEngine
from gapless.executor.model import Piece
from gapless.formulations.errors import ConversionError, ExecutionError, PlacementError
from gapless.formulations.hardware import EngineSettings, Precision, ProcessingUnit

from .pieces import Array


class Honest(OrtEngine):
    """Changes nothing, under a name of its own."""

    def __init_subclass__(cls) -> None:
        cls.name = f"{cls.__module__}:{cls.__name__}"

    name: ClassVar[str] = f"{__name__}:Honest"

    def backends(self) -> tuple[str, ...]:
        return OrtEngine().backends()

    def open(self, artifact: Artifact, unit: ProcessingUnit) -> Session:  # type: ignore[override]
        return self.wrapped(super().open(artifact, unit), unit)

    def wrapped(self, session: Session, unit: ProcessingUnit) -> Session:
        return session


class Wrapped:
    """A session that does what another one does."""

    def __init__(self, inner: Session) -> None:
        self.inner = inner
        self.artifact = inner.artifact
        self.receipt: PlacementReceipt = inner.receipt

    def copy_in(self, arrays: Sequence[Array]) -> None:
        self.inner.copy_in(arrays)

    def run(self) -> None:
        self.inner.run()

    def copy_out(self, arrays: Sequence[Array]) -> None:
        self.inner.copy_out(arrays)

    def operator_times(self, arrays: Sequence[Array], *, repetitions: int) -> tuple[OperatorTime, ...] | None:
        return self.inner.operator_times(arrays, repetitions=repetitions)

    def close(self) -> None:
        self.inner.close()


class _Roaming(Wrapped):
    def run(self) -> None:
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
        super().run()


class OnOtherCores(Honest):
    """Runs everywhere, whatever the receipt says."""

    def wrapped(self, session: Session, unit: ProcessingUnit) -> Session:
        return _Roaming(session)


class WithFewerThreads(Honest):
    """Says that it has two threads, and has one."""

    def open(self, artifact: Artifact, unit: ProcessingUnit) -> Session:  # type: ignore[override]
        session = Wrapped(super().open(artifact, replace(unit, threads=1)))
        threads = unit.threads
        session.receipt = replace(session.receipt, asked_threads=threads, granted_threads=threads)
        return session


class WithMoreThreads(Honest):
    """Says that it has one thread, and has two."""

    def open(self, artifact: Artifact, unit: ProcessingUnit) -> Session:  # type: ignore[override]
        session = Wrapped(super().open(artifact, replace(unit, threads=2)))
        threads = unit.threads
        session.receipt = replace(session.receipt, asked_threads=threads, granted_threads=threads)
        return session


class OnAnyBackend(Honest):
    """Runs on the CPU whatever is asked, and repeats what was asked."""

    def open(self, artifact: Artifact, unit: ProcessingUnit) -> Session:  # type: ignore[override]
        session = Wrapped(super().open(artifact, replace(unit, engine=EngineSettings())))
        backend = unit.engine.backend
        session.receipt = replace(session.receipt, asked_backend=backend, granted_backend=backend)
        return session


class OnAGpu(OnAnyBackend):
    """The same for one backend, which it lists."""

    def backends(self) -> tuple[str, ...]:
        return ("cpu", "gpu")


class LettingMismatchesPass(Honest):
    """Opens whatever it gets."""

    def __init__(self) -> None:
        super().__init__(allow_mismatch=True)


class _OffByOnePercent(Wrapped):
    def copy_out(self, arrays: Sequence[Array]) -> None:
        super().copy_out(arrays)
        for array in arrays:
            if array.dtype == "float32":
                np.multiply(array, 1.01, out=array)


class OffByOnePercent(Honest):
    def wrapped(self, session: Session, unit: ProcessingUnit) -> Session:
        return _OffByOnePercent(session)


class _Changing(Wrapped):
    def __init__(self, inner: Session, change: Callable[[Array], None]) -> None:
        super().__init__(inner)
        self._change = change

    def copy_out(self, arrays: Sequence[Array]) -> None:
        super().copy_out(arrays)
        for array in arrays:
            self._change(array)


def _is_head(array: Array) -> bool:
    return array.shape == (1, 10, 8, 8)


class WithConstantScores(Honest):
    """Answers 0.5 for every score, in an output that holds boxes up to 640, too."""

    def wrapped(self, session: Session, unit: ProcessingUnit) -> Session:
        def change(array: Array) -> None:
            if _is_head(array):
                array[:, 4:] = 0.5

        return _Changing(session, change)


class WithOneScoreChannelOff(Honest):
    def wrapped(self, session: Session, unit: ProcessingUnit) -> Session:
        def change(array: Array) -> None:
            if _is_head(array):
                array[:, 7] += 0.1

        return _Changing(session, change)


class WithOneWrongClass(Honest):
    """Changes one of 64 class indices to one that no tie explains."""

    def wrapped(self, session: Session, unit: ProcessingUnit) -> Session:
        def change(array: Array) -> None:
            if array.shape == (1, 1, 8, 8) and array.dtype == "int64":
                array[0, 0, 3, 4] = (array[0, 0, 3, 4] + 3) % 6

        return _Changing(session, change)


class TakingTheLastOfTied(Honest):
    """Is right: of two classes that have the same weights, it names the other one."""

    def wrapped(self, session: Session, unit: ProcessingUnit) -> Session:
        def change(array: Array) -> None:
            if array.shape == (1, 1, 8, 8) and array.dtype == "int64":
                assert (array == 0).any()
                array[array == 0] = 5

        return _Changing(session, change)


class WithFlippedBooleans(Honest):
    def wrapped(self, session: Session, unit: ProcessingUnit) -> Session:
        def change(array: Array) -> None:
            if array.dtype == "bool":
                array.reshape(-1)[0] ^= True

        return _Changing(session, change)


class WithConstantAnswers(Honest):
    def wrapped(self, session: Session, unit: ProcessingUnit) -> Session:
        def change(array: Array) -> None:
            if array.dtype == "float32":
                array[...] = array.mean()

        return _Changing(session, change)


class ImpreciseWhenHigh(Honest):
    def wrapped(self, session: Session, unit: ProcessingUnit) -> Session:
        return _OffByOnePercent(session) if unit.engine.precision is Precision.NORMAL else session


class _Deaf(Wrapped):
    heard = False

    def copy_in(self, arrays: Sequence[Array]) -> None:
        if not self.heard:
            super().copy_in(arrays)
        self.heard = True


class IgnoringNewInputs(Honest):
    def wrapped(self, session: Session, unit: ProcessingUnit) -> Session:
        return _Deaf(session)


class _Lazy(Wrapped):
    def copy_in(self, arrays: Sequence[Array]) -> None:
        self.arrays = arrays

    def run(self) -> None:
        self.inner.copy_in(self.arrays)
        self.inner.run()


class ComputingOnYourMemory(Honest):
    def wrapped(self, session: Session, unit: ProcessingUnit) -> Session:
        return _Lazy(session)


class _Writing(Wrapped):
    arrays: Sequence[Array] = ()

    def copy_out(self, arrays: Sequence[Array]) -> None:
        super().copy_out(arrays)
        self.arrays = arrays

    def run(self) -> None:
        super().run()
        if self.arrays:
            super().copy_out(self.arrays)


class WritingIntoOldOutputs(Honest):
    def wrapped(self, session: Session, unit: ProcessingUnit) -> Session:
        return _Writing(session)


class _Spoiling(Wrapped):
    def copy_in(self, arrays: Sequence[Array]) -> None:
        super().copy_in(arrays)
        for array in arrays:
            array[...] = 0


class SpoilingInputs(Honest):
    def wrapped(self, session: Session, unit: ProcessingUnit) -> Session:
        return _Spoiling(session)


class _Keeping(Wrapped):
    def __init__(self, inner: Session) -> None:
        super().__init__(inner)
        self.kept: list[Any] = []

    def copy_out(self, arrays: Sequence[Array]) -> None:
        super().copy_out(arrays)
        self.kept.append([array.copy() for array in arrays])


class KeepingOutputs(Honest):
    def wrapped(self, session: Session, unit: ProcessingUnit) -> Session:
        return _Keeping(session)


class KeepingFiles(Honest):
    def wrapped(self, session: Session, unit: ProcessingUnit) -> Session:
        os.open(os.devnull, os.O_RDONLY)
        return session


class Crashing(Honest):
    """Dies of what it does not know."""

    def open(self, artifact: Artifact, unit: ProcessingUnit) -> Session:  # type: ignore[override]
        if b"Frobnicate" in Path(artifact.path).read_bytes():
            os.abort()
        return super().open(artifact, unit)


class Raising(Honest):
    """Raises whatever comes."""

    def open(self, artifact: Artifact, unit: ProcessingUnit) -> Session:  # type: ignore[override]
        try:
            return super().open(artifact, unit)
        except PlacementError:
            raise
        except ExecutionError as error:
            raise ValueError("something") from error


class WithoutNames(Honest):
    """Does not say which piece it refuses."""

    def open(self, artifact: Artifact, unit: ProcessingUnit) -> Session:  # type: ignore[override]
        try:
            return super().open(artifact, unit)
        except PlacementError:
            raise
        except ExecutionError as error:
            raise ExecutionError("this cannot be opened") from error


class _Silent(Wrapped):
    def __init__(self, artifact: Artifact, receipt: PlacementReceipt) -> None:
        self.artifact, self.receipt = artifact, receipt

    def copy_in(self, arrays: Sequence[Array]) -> None:
        pass

    def run(self) -> None:
        pass

    def copy_out(self, arrays: Sequence[Array]) -> None:
        pass

    def close(self) -> None:
        pass


class RunningAnything(Honest):
    """Gives something for what it cannot open."""

    def open(self, artifact: Artifact, unit: ProcessingUnit) -> Session:  # type: ignore[override]
        try:
            session = self.last = super().open(artifact, unit)
        except PlacementError:
            raise
        except ExecutionError:
            return _Silent(artifact, self.last.receipt)
        return session


class _BackInTime(Wrapped):
    def operator_times(self, arrays: Sequence[Array], *, repetitions: int) -> tuple[OperatorTime, ...] | None:
        names = [spec.name for spec in self.artifact.outputs]
        return tuple(OperatorTime(output=name, kind="Conv", time_us=-1.0) for name in names)


class WithNegativeTimes(Honest):
    def wrapped(self, session: Session, unit: ProcessingUnit) -> Session:
        return _BackInTime(session)


class RefusingEverything(Honest):
    def prepare(self, pieces: Sequence[Piece], *, folder: Path | None = None) -> tuple[Artifact, ...]:
        raise ConversionError(f"cannot convert {', '.join(piece.name for piece in pieces)}")


class NowhereToRun(Honest):
    """Refuses every unit, as an engine without its device does."""

    def open(self, artifact: Artifact, unit: ProcessingUnit) -> Session:  # type: ignore[override]
        raise PlacementError(f"no device for {artifact.piece!r}")


class TakingNothing(Honest):
    def takes(self, kind: str) -> bool:
        return False


class WithoutBackends(Honest):
    def backends(self) -> tuple[str, ...]:
        return ()
