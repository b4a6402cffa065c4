"""Every chunk is compared with the uncut model on every unit before requests come."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pytest

from gapless.executor.coordination.coordinator import Coordinator
from gapless.executor.engine import Artifact, PlacementReceipt
from gapless.executor.runner import UNCHECKED
from gapless.formulations.errors import EngineUnavailableError, OutputMismatchError
from gapless.formulations.hardware import ProcessingUnit
from gapless.solvers.coordination.dynamic import LeastSlack
from tests.executor.coordination.coordinators import coordinator
from tests.executor.pipeline.fakes import Array, FakeEngine, FakeModel, FakeSession, chain, platform

NET = (("add", 1.0), ("scale", 2.0), ("add", 3.0))


class LyingOnB(FakeEngine):
    """Right on all units but "b", where the chunk that ends the network is wrong."""

    @property
    def name(self) -> str:
        return f"{__name__}:LyingOnB"

    def prepare(self, *args: object, **options: object) -> tuple[Artifact, ...]:
        from dataclasses import replace

        return tuple(replace(made, engine=self.name) for made in super().prepare(*args, **options))  # type: ignore[arg-type]

    def open(self, artifact: Artifact, unit: ProcessingUnit) -> FakeSession:
        wrong = unit.name == "b" and artifact.outputs[0].name == "t2"
        return Wrong(artifact, unit) if wrong else FakeSession(artifact, unit)


class Wrong(FakeSession):
    def copy_out(self, arrays: object) -> None:
        super().copy_out(arrays)  # type: ignore[arg-type]
        arrays[0][3] *= 1.01  # type: ignore[index]


class RightAtFirst(LyingOnB):
    """Right on "b" for one request, and wrong from then on: as if another branch were taken."""

    @property
    def name(self) -> str:
        return f"{__name__}:RightAtFirst"

    def open(self, artifact: Artifact, unit: ProcessingUnit) -> FakeSession:
        return WrongLater(artifact, unit) if unit.name == "b" else FakeSession(artifact, unit)


class WrongLater(FakeSession):
    ran = 0

    def copy_out(self, arrays: object) -> None:
        super().copy_out(arrays)  # type: ignore[arg-type]
        arrays[0][3] *= 1.0 + 0.01 * (self.ran > 0)  # type: ignore[index]
        self.ran += 1


class Silent(LyingOnB):
    """Writes nothing on "b"."""

    @property
    def name(self) -> str:
        return f"{__name__}:Silent"

    def open(self, artifact: Artifact, unit: ProcessingUnit) -> FakeSession:
        return Deaf(artifact, unit) if unit.name == "b" else FakeSession(artifact, unit)


class Deaf(FakeSession):
    def copy_out(self, arrays: object) -> None:
        pass


@pytest.mark.slow
def test_a_unit_that_lies_is_refused_by_name_and_the_others_go_on() -> None:
    model = chain(*NET, name="net")
    with Coordinator(platform("a", "b"), LyingOnB(), LeastSlack()) as opened:
        with pytest.raises(OutputMismatchError) as raised:
            opened.register(model, borders=[1, 2])
        words = str(raised.value)
        # Of the chunks of "b" (0:1), (0:2) are right; (0:3) is the first that is not.
        assert "The first wrong tensor is 't2', made by 'net' (layers 0 to 2) on unit 'b'" in words
        assert "What that unit was granted: fake 1, backend cpu" in words
        assert "net" not in opened.registered
        right = opened.register(chain(("add", 1.0), name="other"))  # it still serves what is right
        assert right.compared


@pytest.mark.slow
def test_chunks_that_policies_may_choose_later_are_compared_too() -> None:
    """Alone, "b" would run only the last layer: it is wrong wherever a request might be sent."""
    with Coordinator(platform("a", "b"), LyingOnB(), LeastSlack()) as opened:
        costs_nothing = chain(*NET, name="net")
        with pytest.raises(OutputMismatchError, match=r"layers 0 to 2\) on unit 'b'"):
            opened.register(costs_nothing)


@pytest.mark.slow
def test_each_chunk_is_compared_on_several_requests() -> None:
    with (
        Coordinator(platform("a", "b"), RightAtFirst(), LeastSlack()) as opened,
        pytest.raises(OutputMismatchError, match="on unit 'b'"),
    ):
        opened.register(chain(("add", 1.0), name="net"))


@pytest.mark.slow
def test_an_engine_that_writes_nothing_does_not_find_the_numbers_of_another() -> None:
    with (
        Coordinator(platform("a", "b"), Silent(), LeastSlack()) as opened,
        pytest.raises(OutputMismatchError, match="on unit 'b'"),
    ):
        opened.register(chain(*NET, name="net"), borders=[1])


def _compared(receipts: Collection[PlacementReceipt]) -> Mapping[str, set[bool | None]]:
    return {unit: {r.compared for r in receipts if r.unit == unit} for unit in {r.unit for r in receipts}}


@pytest.mark.slow
def test_receipts_say_whether_numbers_were_compared() -> None:
    model = chain(*NET, name="net", joints=[1])
    with coordinator("a", "b") as opened:
        found = opened.register(model, borders=[2])
        assert _compared(opened.receipts) == {"a": {True}, "b": {True}}
        assert found.numbers.startswith("numbers agree with the uncut model: largest relative error")
        again = opened.register(chain(*NET, name="net", joints=[1]), "again", borders=[2])
        assert again.network == found.network
        assert again.compared
    with Coordinator(platform("a", "b"), LyingOnB(), LeastSlack(), check=False) as opened:
        found = opened.register(model)
        assert _compared(opened.receipts) == {"a": {False}, "b": {False}}
        assert (found.compared, found.numbers) == (False, UNCHECKED)


class Blind(FakeModel):
    """A model whose reference cannot be run here."""

    def reference(self, inputs: Mapping[str, Array], *, also: Collection[str] = ()) -> dict[str, Array]:
        raise EngineUnavailableError("onnxruntime is not installed")


def test_where_no_reference_can_be_run_it_is_served_and_says_so() -> None:
    model = Blind("net", chain(*NET).layers)
    with coordinator("a") as opened:
        found = opened.register(model)
        assert found.numbers == "numbers are not verified: onnxruntime is not installed"
        assert _compared(opened.receipts) == {"a": {False}}
