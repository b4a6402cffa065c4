"""What comparisons come to: one gatherer says it of pipelines, coordinators and exports."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from gapless.executor.comparing import Allowed, Difference
from gapless.executor.gathering import Gathered
from gapless.formulations.errors import EngineUnavailableError
from tests.executor.pipeline.fakes import Array, FakeModel, chain


def test_the_worst_counts_and_what_is_tied() -> None:
    gathered = Gathered("output")
    gathered.add(Difference(1e-5, 1e-3), "x")
    gathered.add(Difference(2e-4, 1e-3, share=0.01), "y")
    gathered.add(Difference(0.0, 3e-2), "z")
    found = gathered.verification(3)
    assert (found.requests, found.worst_error, found.tolerance) == (3, 2e-4, 3e-2)
    assert (found.where, found.share, found.problem) == ("output 'y'", 0.01, "")
    assert "1 % of the entries of an output differ within that, as in a tie" in found.words


def test_what_cannot_be_compared_counts_for_nothing_but_is_said() -> None:
    gathered = Gathered("tensor")
    gathered.add(Difference(0.0, 1e-3, share=0.5, compared=False), "blind")
    alone = gathered.verification()
    assert (alone.compared, alone.worst_error, alone.where, alone.share) == (False, None, "", 0.0)
    assert "for 'blind' the uncut model itself gives mostly numbers that are not finite" in alone.words
    gathered.add(Difference(1e-6, 1e-3), "seen")
    both = gathered.verification()
    assert (both.worst_error, both.where) == (1e-6, "tensor 'seen'")
    assert "; but for 'blind' the uncut model" in both.words


def test_the_share_of_what_is_wrong_is_no_tie() -> None:
    gathered = Gathered("output")
    gathered.add(Difference(0.5, 1e-3, share=0.9), "wrong")
    gathered.add(Difference(1e-4, 1e-3, share=0.1), "tied")
    assert gathered.verification().share == 0.1


class _Absent(FakeModel):
    def reference(self, inputs: Mapping[str, Array], *, also: Collection[str] = ()) -> dict[str, Array]:
        raise EngineUnavailableError("onnxruntime is not installed")


def test_models_that_cannot_be_run_are_said_once() -> None:
    gathered, layers = Gathered("tensor", 0.25), chain(("add", 1.0)).layers
    for name in ("one", "two"):
        assert gathered.right(_Absent(name, layers), ["t0"]) == {}
    found = gathered.verification(0)
    assert (found.requests, found.tolerance, found.problem) == (0, 0.25, "onnxruntime is not installed")


def test_right_numbers_are_those_of_inputs_and_tensors() -> None:
    model = chain(("add", 1.0), ("scale", 2.0), name="net")
    right = Gathered("tensor").right(model, ["t0"])
    inputs = model.sample_inputs(1)
    assert {*inputs, "t0"} <= right.keys()
    for name, array in inputs.items():
        assert right[name].compare(array, 0, Allowed(0.0)).agrees
        assert len(right[name].arrays) == 3
