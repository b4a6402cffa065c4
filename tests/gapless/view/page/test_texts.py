"""Texts: characters that do something show instead."""

from __future__ import annotations

from gapless.view.page.texts import clipped, prose, visible


def test_characters_that_turn_or_hide_text_show() -> None:
    assert visible("a\N{RIGHT-TO-LEFT OVERRIDE}b\x1b[0m\x00") == "a\ufffdb\ufffd[0m\ufffd"
    assert visible("conv1/Relu, \N{HEBREW LETTER ALEF} 模型\n") == "conv1/Relu, \N{HEBREW LETTER ALEF} 模型\n"


def test_long_texts_are_cut() -> None:
    assert clipped("short") == "short"
    assert clipped("x" * 300, 20) == f"{'x' * 16} ..."


def test_numbers_and_their_units_stay_together() -> None:
    assert prose("5 ms of 9.1 MiB, 3 % and 2 slots") == "5\xa0ms of 9.1\xa0MiB, 3\xa0% and 2 slots"
