"""`make quick` and `make test` have something of every package: a mark too many must not take one out."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import COLLECTED
from .representatives import REPRESENTATIVES

TESTS = Path(__file__).parent


FOLDERS = {path.parent for path in TESTS.rglob("test_*.py")}


@pytest.fixture
def collected(request: pytest.FixtureRequest) -> tuple[pytest.Item, ...]:
    """All tests, also those that are not run this time."""
    items = request.config.stash[COLLECTED]
    if {item.path.parent for item in items} != FOLDERS:
        pytest.skip("only some folders are looked at; this is about all of them")
    return items


def is_slow(item: pytest.Item) -> bool:
    """Return whether `make quick` leaves a test out."""
    return item.get_closest_marker("slow") is not None


def test_every_folder_of_tests_takes_part(collected: tuple[pytest.Item, ...]) -> None:
    assert {item.path.parent for item in collected if not is_slow(item)} == FOLDERS


def test_what_stands_for_a_kind_is_there(collected: tuple[pytest.Item, ...]) -> None:
    assert {item.nodeid for item in collected if is_slow(item)} >= REPRESENTATIVES
