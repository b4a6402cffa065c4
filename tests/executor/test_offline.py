"""The helper that forbids the network: it must catch what it is there for."""

from __future__ import annotations

import signal
import sys

import pytest

from tests.executor.offline import run_offline, supported

pytestmark = pytest.mark.skipif(not supported(), reason="needs Linux on x86-64 or 64-bit ARM")


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_a_harmless_program_runs() -> None:
    run = run_offline(python("import socket; socket.socketpair(); print('fine')"))
    assert (run.returncode, run.stdout) == (0, "fine\n")


@pytest.mark.parametrize("family", ["AF_INET", "AF_INET6"])
def test_internet_sockets_are_fatal(family: str) -> None:
    run = run_offline(python(f"import socket; socket.socket(socket.{family}); print('open')"))
    assert (run.returncode, run.stdout) == (-signal.SIGSYS, "")


def test_children_are_watched_too() -> None:
    code = "import socket; socket.socket(socket.AF_INET)"
    run = run_offline(
        python(f"import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-c', {code!r}]))")
    )
    assert run.returncode == 256 - signal.SIGSYS


def test_starting_pip_is_noticed() -> None:
    with pytest.raises(AssertionError, match="pip"):
        run_offline(
            python("import subprocess, sys; subprocess.run([sys.executable, '-m', 'pip', '--version'])")
        )
    with pytest.raises(AssertionError, match="getaddrinfo"):
        run_offline(python("import socket; socket.getaddrinfo('localhost', 80)"))
