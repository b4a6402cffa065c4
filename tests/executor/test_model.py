from __future__ import annotations

import pytest

from gapless.executor.model import check_range
from gapless.formulations.errors import InvalidPlanError
from gapless.formulations.network import Layer, Network

NETWORK = Network(name="n", layers=tuple(Layer(name=str(i)) for i in range(5)), forbidden_cuts=(2,))


@pytest.mark.parametrize(("start", "stop"), [(0, 5), (0, 1), (1, 3), (4, 5)])
def test_chunks_between_legal_cuts_pass(start: int, stop: int) -> None:
    check_range(NETWORK, start, stop)


@pytest.mark.parametrize(("start", "stop"), [(0, 2), (2, 5)])
def test_forbidden_cuts_are_no_ends(start: int, stop: int) -> None:
    with pytest.raises(InvalidPlanError, match="may not be cut before layer 2"):
        check_range(NETWORK, start, stop)


@pytest.mark.parametrize(("start", "stop"), [(-1, 1), (1, 1), (3, 1), (0, 6)])
def test_other_ranges_are_no_chunks(start: int, stop: int) -> None:
    with pytest.raises(InvalidPlanError, match="is no chunk of it"):
        check_range(NETWORK, start, stop)
