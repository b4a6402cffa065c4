"""What is shown and not printed is found; what differs from run to run is not held against a page."""

from __future__ import annotations

import pytest

from ..printed import Output, missing, rewritten

PRINTED = """plan 1 wins: period 5.33 ms, 83.0 % busy [native, 6.5 ms]

  #  plan     period
  1  0-0 Big  5.33 ms
  2  0-1 GPU  5.40 ms
"""


@pytest.mark.parametrize(
    ("shown", "lost"),
    [
        ("plan 1 wins: period 5.33 ms, 83.0 % busy [native, 0.1 s]\n# plan period", []),
        ("plan 1 wins: ...\n...\n2 0-1 GPU 5.40 ms", []),
        ("plan 1 wins: period 5.34 ms, ...", ["plan 1 wins: period 5.34 ms, ..."]),
        ("# plan period\n2 0-1 GPU 5.40 ms", ["2 0-1 GPU 5.40 ms"]),  # a line between is not shown
        ("2 0-1 GPU 5.40 ms\n...\n1 0-0 Big 5.33 ms", ["1 0-0 Big 5.33 ms"]),  # another order
    ],
)  # fmt: skip
def test_numbers_lines_and_order_of_what_is_computed(shown: str, lost: list[str]) -> None:
    assert missing(shown, Output(PRINTED, measured=False)) == lost


@pytest.mark.parametrize(
    ("shown", "alike"),
    [
        ("2  0-7 GPU  901.2 us\n1  0-3 Big  4 ms", True),
        ("plan 12 slower: period 1 s, 3 % busy [native, 2 s]", True),
        ("1  0-0 Big  5.33 MiB", False),
        ("1  0-0 Big  5.33", False),
        ("1  0-0 Little  5.33 ms", False),
    ],
)
def test_of_what_is_measured_only_the_kinds_of_numbers_count(shown: str, alike: bool) -> None:
    assert (missing(shown, Output(PRINTED, measured=True)) == []) == alike


def test_a_block_is_rewritten_with_what_is_printed() -> None:
    new = rewritten("# plan period\n1 0-0 Big 7.00 ms\n2 0-1 GPU 7.10 ms\n", Output(PRINTED, measured=False))
    assert new == "#  plan     period\n1  0-0 Big  5.33 ms\n2  0-1 GPU  5.40 ms\n"
    assert missing(new, Output(PRINTED, measured=False)) == []
