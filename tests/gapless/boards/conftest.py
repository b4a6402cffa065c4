"""A board that is this machine, reached by a real ssh."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest

from gapless.api.device import this_device
from gapless.boards.ssh import Address
from tests.executor.graph.models import residual
from tests.sshd import Sshd, serving, why_not


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    reason = why_not()
    if reason:
        pytest.skip(reason)
    with serving(tmp_path_factory.mktemp("sshd")) as found:
        yield found


@pytest.fixture
def board(server: Sshd, monkeypatch: pytest.MonkeyPatch) -> Sshd:
    """The server, which ssh knows by the alias `board`."""
    for name, value in server.variables.items():
        monkeypatch.setenv(name, value)
    return server


@pytest.fixture
def address(board: Sshd) -> Address:
    return Address.of("board")


@pytest.fixture(scope="session")
def model_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small convolutional network."""
    path = tmp_path_factory.mktemp("model") / "small.onnx"
    onnx.save(residual(blocks=1), str(path))
    return path


@pytest.fixture(scope="session")
def unit() -> str:
    """The smallest unit of this machine: one core, under whatever name it has here."""
    return min(this_device().units, key=lambda unit: len(unit.cores) or 1000).name
