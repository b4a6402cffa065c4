"""An ssh server on the loopback address with its own keys and settings, which stands for a board."""

from __future__ import annotations

import getpass
import os
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.processes import soon

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Sshd:
    """A running server.

    Attributes
    ----------
    folder
        Its keys, settings and log; the settings of the client are `config` there.
    port
        Where it listens.
    pid
        Its process; each connection is a child of it.
    """

    folder: Path
    port: int
    pid: int

    @property
    def cache(self) -> Path:
        """The cache of gapless on the board."""
        return self.folder / "cache"

    @property
    def shelf(self) -> Path:
        """Where boards keep what was brought there."""
        return self.cache / "boards"

    @property
    def variables(self) -> dict[str, str]:
        """The environment in which `board` is this server, with the Python of the tests."""
        there = {"PYTHONPATH": str(ROOT), "GAPLESS_CACHE": str(self.cache)}
        python = ["env", *(f"{name}={value}" for name, value in there.items()), sys.executable]
        return {"GAPLESS_SSH": f"ssh -F {self.folder}/config", "GAPLESS_REMOTE_PYTHON": shlex.join(python)}


def why_not() -> str:
    """Return why no server can be started here; empty: it can."""
    missing = [name for name in ("ssh", "ssh-keygen") if shutil.which(name) is None]
    if _program() is None:
        missing.append("sshd")
    return f"{', '.join(missing)} not installed (openssh-server)" if missing else ""


@contextmanager
def serving(folder: Path) -> Iterator[Sshd]:
    """Run a server until the end of the block."""
    port = _free_port()
    _write_settings(folder, port)
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    words = [str(_program()), "-D", "-e", "-f", str(folder / "sshd_config")]
    with (folder / "log").open("w") as log, subprocess.Popen(words, stderr=log) as server:
        try:
            assert soon(lambda: _listens(port) or server.poll() is not None)
            assert server.poll() is None, (folder / "log").read_text()
            yield Sshd(folder=folder, port=port, pid=server.pid)
        finally:
            server.terminate()


def _write_settings(folder: Path, port: int) -> None:
    for name in ("host_key", "own_key", "strange_key"):
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(words, check=True, stdin=subprocess.DEVNULL)
    shutil.copy(folder / "own_key.pub", folder / "authorized")
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {(folder / 'host_key.pub').read_text()}")
    (folder / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host_key\nPidFile none\n"
        f"AuthorizedKeysFile {folder}/authorized\nStrictModes no\nUsePAM no\n"
        "PasswordAuthentication no\nKbdInteractiveAuthentication no\n"
    )
    (folder / "config").write_text(
        f"Host board behind changed stranger\n  HostName 127.0.0.1\n  Port {port}\n"
        f"Host behind\n  ProxyJump board\n"
        f"Host changed\n  UserKnownHostsFile {folder}/other_hosts\n"
        f"Host stranger\n  IdentityFile {folder}/strange_key\n"
        f"Host * !stranger\n  IdentityFile {folder}/own_key\n"
        f"Host *\n  User {getpass.getuser()}\n  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {folder}/known_hosts\n  GlobalKnownHostsFile none\n  ControlPath none\n"
    )
    (folder / "other_hosts").write_text(f"[127.0.0.1]:{port} {(folder / 'strange_key.pub').read_text()}")


def _program() -> str | None:
    """Return the server's path, which it must be started by."""
    return shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _listens(port: int) -> bool:
    with socket.socket() as trial:
        return trial.connect_ex(("127.0.0.1", port)) == 0
