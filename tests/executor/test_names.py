from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gapless.executor.names import distinct, safe_name
from gapless.formulations.validation import Defects

TEXTS = st.text(st.characters(), max_size=300)


def test_good_names_stay() -> None:
    assert safe_name("/model/conv1/Conv.weight größe") == "/model/conv1/Conv.weight größe"


@given(TEXTS)
def test_every_text_becomes_a_valid_name(text: str) -> None:
    defects = Defects("name")
    name = safe_name(text)
    defects.check_name("name", name)
    assert defects.found == []
    assert len(name) <= 120
    assert safe_name(name) == name


def test_different_texts_keep_different_names() -> None:
    texts = ["a" * 300, "a" * 301, "\n", "\t", "", " ", "  ", "x\ny", "x\ty"]
    assert len({safe_name(text) for text in texts}) == len(texts)


@given(st.lists(st.sampled_from(["a", "b", "a#2", "a#3"])))
def test_repeated_names_are_numbered(names: list[str]) -> None:
    given_names = distinct(names)
    assert len(set(given_names)) == len(given_names) == len(names)
    assert all(new.startswith(old) for new, old in zip(given_names, names, strict=True))


def test_the_first_keeps_its_name() -> None:
    assert distinct(["a", "a", "b", "a"]) == ("a", "a#2", "b", "a#3")
