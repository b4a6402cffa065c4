"""`make quick` has something of every package: a mark too many must not take one out of it."""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parent


@pytest.mark.slow
def test_every_folder_of_tests_takes_part(request: pytest.FixtureRequest) -> None:
    files = set(TESTS.rglob("test_*.py"))
    items = request.session.items
    if {item.path for item in items} != files:
        pytest.skip("only some tests are run; this one looks at all of them")
    chosen = {item.path.parent for item in items if item.get_closest_marker("slow") is None}
    assert chosen == {path.parent for path in files}
