"""Names that somebody may have meant."""

from __future__ import annotations

import pytest

from gapless.formulations.validation import MAX_LENGTH, meant, near, python_hint, shown

BACKENDS = ("native", "exhaustive", "cpsat", "z3", "z3-paper", "pulp", "pulp-cbc", "hungarian", "band")


@pytest.mark.parametrize(
    ("typed", "known", "found"),
    [
        ("cpsta", BACKENDS, ("cpsat",)),
        ("CPSAT", BACKENDS, ("cpsat",)),
        ("natve", BACKENDS, ("native",)),
        ("pulp", ("pulp-cbc", "pulp"), ("pulp",)),
        ("pulp-", BACKENDS, ("pulp", "pulp-cbc")),
        ("paper", BACKENDS, ("z3-paper",)),
        ("exhaust", BACKENDS, ("exhaustive",)),
        ("npu", ("cpu", "gpu", "little"), ()),
        ("mmn", ("mnn", "onnxruntime", "callable"), ("mnn",)),
        ("", BACKENDS, ()),
        ("x" * 10_000, BACKENDS, ()),
        (
            "pixel7a",
            ("pixel7a/octree", "pixel7a/alexnet", "jetson/octree"),
            ("pixel7a/octree", "pixel7a/alexnet"),
        ),
    ],
)
def test_near_names(typed: str, known: tuple[str, ...], found: tuple[str, ...]) -> None:
    assert set(near(typed, known)) == set(found)


def test_never_more_than_asked_for_and_the_nearest_first() -> None:
    known = [f"core{number}" for number in range(20)]
    assert near("core7", known) == ("core7",)
    assert len(near("cores", known)) == 3
    assert near("bert2", ["bert10", "bert"])[0] == "bert"


def test_what_is_said_of_a_name() -> None:
    assert meant("z", ("cpsat",)) == "choose one of cpsat"
    assert meant("cpsta", BACKENDS) == "did you mean cpsat?"
    listed = "`gapless doctor` lists them"
    assert meant("cpsta", BACKENDS, listed_by=listed) == "did you mean cpsat? `gapless doctor` lists them"
    assert meant("hal", BACKENDS, listed_by=listed) == listed
    assert meant("hal", BACKENDS[:2], listed_by=listed) == "choose one of native, exhaustive"
    assert meant("gpu", ("big", "little"), choice="the platform has") == "the platform has big, little"
    assert meant("any", ()) == "there is none"
    assert meant("pulp-", ("pulp-a", "pulp-b", "pulp-c")).count(" or ") == 1


def test_a_long_name_is_shown_short() -> None:
    assert shown("a'b") == '"a\'b"'
    assert len(shown("x" * 10_000)) < MAX_LENGTH + 10


def test_hints_for_names_that_python_did_not_find() -> None:
    class View:
        def uses(self) -> None: ...

    def hint(code: str) -> str:
        names = {"View": View}
        try:
            exec(code, names)
        except Exception as error:
            return python_hint(error, names)
        raise AssertionError(code)

    assert hint("View().usess") == "; did you mean uses?"
    assert hint("Viev()") == "; did you mean View?"
    assert hint("prnt(3)") == "; did you mean print?"
    assert hint("from gapless.formulations.validation import meantt") == "; did you mean meant?"
    assert hint("1 / 0") == ""
    assert hint("import nothing_like_it") == ""
    assert hint("quxquxqux") == ""
