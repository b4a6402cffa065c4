"""Run a program that may not use the network or install anything.

`python -m tests.executor.offline PROGRAM ARGUMENT...` makes the kernel kill the program, and everything
it starts, when it opens an internet socket, and replaces itself by the program.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent

_SOCKET_CALL = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
_FAMILIES = (2, 10)
_LOAD, _JUMP_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _KILL_PROCESS = 0x7FFF0000, 0x80000000
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _FILTER_MODE = 38, 22, 2

# Python programs say here what the kernel cannot see: that they start pip, or look up a host name.
_WITNESS = """
import os, sys

def witness(event, arguments):
    seen = event in ("socket.getaddrinfo", "socket.gethostbyname")
    if event in ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system"):
        words = repr(arguments[:2]).replace("'", " ").replace("/", " ").replace(",", " ").split()
        seen = any(word.startswith("pip") for word in words)
    if event == "import" and arguments[0] == "pip":
        seen = True
    if seen:
        with open(os.environ["OFFLINE_WITNESS"], "a") as log:
            log.write(f"{event}: {arguments[:2]!r}\\n")

sys.addaudithook(witness)
"""


def supported() -> bool:
    """Return whether the kernel of this machine can be asked."""
    return sys.platform == "linux" and platform.machine() in _SOCKET_CALL


def run_offline(
    argv: Sequence[str], *, env: Mapping[str, str] | None = None, timeout_s: float = 120.0
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end without network.

    Parameters
    ----------
    argv
        Program and arguments.
    env
        Further environment variables.
    timeout_s
        When to give up.

    Returns
    -------
    CompletedProcess
        With its output; the return code is -31 (SIGSYS) when it opened an internet socket.

    Raises
    ------
    AssertionError
        A Python program in it started pip, or looked for a host.
    """
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "sitecustomize.py").write_text(_WITNESS)
        witness = Path(folder, "witness")
        paths = [folder, str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        run = subprocess.run(
            [sys.executable, "-m", "tests.executor.offline", *argv],
            capture_output=True,
            text=True,
            timeout=timeout_s,
            cwd=ROOT,
            check=False,
            env={
                **os.environ,
                **(env or {}),
                "PYTHONPATH": os.pathsep.join(paths),
                "OFFLINE_WITNESS": str(witness),
            },
        )
        seen = witness.read_text() if witness.exists() else ""
    assert not seen, f"{argv} is not content with what is here:\n{seen}"
    return run


def forbid_internet() -> None:
    """Have the kernel kill this process, and its children, when they open an internet socket."""
    arch, socket_call = _SOCKET_CALL[platform.machine()]
    program = [
        _step(_LOAD, 4),  # architecture
        _step(_JUMP_EQUAL, arch, otherwise=5),
        _step(_LOAD, 0),  # number of the system call
        _step(_JUMP_EQUAL, socket_call, otherwise=3),
        _step(_LOAD, 16),  # its first argument: the address family
        _step(_JUMP_EQUAL, _FAMILIES[0], then=2),
        _step(_JUMP_EQUAL, _FAMILIES[1], then=1),
        _step(_RETURN, _ALLOW),
        _step(_RETURN, _KILL_PROCESS),
    ]
    code = ctypes.create_string_buffer(b"".join(program))
    header = struct.pack("HxxxxxxP", len(program), ctypes.addressof(code))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    for arguments in ((_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (_PR_SET_SECCOMP, _FILTER_MODE, header, 0, 0)):
        if prctl(*arguments) != 0:
            raise OSError(ctypes.get_errno(), "the kernel takes no filter")


def _step(code: int, value: int, *, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("HBBI", code, then, otherwise, value)


if __name__ == "__main__":
    forbid_internet()
    os.execvp(sys.argv[1], sys.argv[1:])
