"""What a board has of what gapless needs there, and how to install the rest."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..executor.progress import Report, silent
from ..formulations.errors import BoardError
from ..version import __version__
from .running import run_there, sent
from .ssh import PYTHON_VARIABLE, Address, Connection, Greeting, NoPythonError, UnreachableError

ENGINES = ("mnn", "onnxruntime", "openvino")
"""Who runs models; one of them is needed."""

_PARTLY: dict[str, Any] = {"extra": "ignore", "strict": True}
"""A board may have a later gapless, which tells more."""

EXTRAS = "gapless[mnn,zoo]"
ENVIRONMENT = "gapless-env"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that a board needs."""

    what: str  # its name
    ok: bool  # whether it is there
    found: str  # what was found
    cure: tuple[str, ...] = ()
    """Commands that install it, or what else to do, one a line; empty where nothing is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardDiagnosis:
    """What a board has."""

    board: str  # what ssh was told
    checks: tuple[Check, ...]  # what gapless needs there, up to the first that stops all others
    diagnosis: Mapping[str, Any] | None = None
    """The document of `gapless doctor` there; None: it cannot be run."""

    @property
    def ok(self) -> bool:
        """Whether nothing is missing."""
        return all(check.ok for check in self.checks)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Report:
    """What `gapless doctor` there says of an engine, a solver or a permission."""

    __pydantic_config__: ClassVar[Any] = _PARTLY

    name: str
    ok: bool
    reason: str | None = None
    version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """What is used of the document of `gapless doctor` there."""

    __pydantic_config__: ClassVar[Any] = _PARTLY

    gapless: str
    device: str = ""
    python: str = ""
    engines: tuple[_Report, ...]
    backends: tuple[_Report, ...] = ()
    permissions: tuple[_Report, ...] = ()


def diagnose_board(address: Address, *, report: Report = silent) -> BoardDiagnosis:
    """Look at what a board has; that something is missing is data, not an error."""
    diagnosis: Mapping[str, Any] | None = None
    checks: list[Check] = []
    try:
        with Connection.to(address) as (_, greeting):
            checks += _greeted(address, greeting)
        if all(check.ok for check in checks):
            ran = run_there(address, "doctor", (), report=report)
            document = ran.document()
            checks += _of_document(address, document)
            diagnosis = document
    except UnreachableError as error:
        checks.append(Check(what="ssh", ok=False, found=str(error), cure=_way(address)))
    except NoPythonError as error:
        checks += [_reached(address), Check(what="Python", ok=False, found=str(error), cure=_python(address))]
    except BoardError as error:
        checks.append(Check(what="gapless", ok=False, found=str(error), cure=_gapless(address)))
    return BoardDiagnosis(board=str(address), checks=tuple(checks), diagnosis=diagnosis)


def _greeted(address: Address, greeting: Greeting) -> Iterator[Check]:
    yield _reached(address)
    if greeting.state == "old-python":
        found = f"{greeting.said}; gapless needs 3.11 or newer"
        yield Check(what="Python", ok=False, found=found, cure=_python(address))
        return
    if greeting.state == "ready":
        yield Check(what="Python", ok=True, found=greeting.said)
        return
    absent = greeting.state == "no-gapless"
    yield Check(what="Python", ok=True, found=greeting.said if absent else "3.11 or newer")
    found = "not installed" if absent else f"its agent does not work: {greeting.said}"
    yield Check(what="gapless", ok=False, found=found, cure=_gapless(address))


def _of_document(address: Address, document: Mapping[str, Any]) -> Iterator[Check]:
    """Yield what `gapless doctor` there tells: versions and engines."""
    told = sent(dict(document), _Told, str(address), "an answer of `gapless doctor`")
    version = told.gapless
    same = version == __version__
    found = version if same else f"{version}; here is {__version__}"
    yield Check(what="gapless", ok=same, found=found, cure=() if same else _gapless(address))
    reports = [each for each in told.engines if each.name in ENGINES]
    ready = [f"{each.name} {each.version or ''}".strip() for each in reports if each.ok]
    if ready:
        yield Check(what="engine", ok=True, found=", ".join(ready))
    else:
        why = "; ".join(str(each.reason) for each in reports) or "there is none"
        yield Check(what="engine", ok=False, found=why, cure=(_pip(address, EXTRAS),))


def _reached(address: Address) -> Check:
    return Check(what="ssh", ok=True, found=f"reaches {address} without a password")


def _way(address: Address) -> tuple[str, ...]:
    return ("# this must work without a password:", shlex.join([*address.ssh, address.destination]))


def _there(address: Address, *words: str) -> str:
    """Return the command here that runs a command there, as a shell takes it."""
    quoted = shlex.join(words)
    plain = not set(quoted) & set('"$`\\!')  # then one pair of quotes is enough
    word = f'"{quoted}"' if plain else shlex.quote(quoted)
    return f"{shlex.join([*address.ssh, address.destination])} {word}"


def _pip(address: Address, what: str) -> str:
    return _there(address, *address.python, "-m", "pip", "install", what)


def _python(address: Address) -> tuple[str, ...]:
    return (
        _there(address, "sudo", "apt", "install", "python3", "python3-venv"),
        "# or, where it is there under another name:",
        f"export {PYTHON_VARIABLE}=/path/to/python3.11",
    )


def _gapless(address: Address) -> tuple[str, ...]:
    python = f"{ENVIRONMENT}/bin/python"
    return (
        _pip(address, EXTRAS),
        "# or, where the system manages Python:",
        _there(address, *address.python, "-m", "venv", ENVIRONMENT),
        _there(address, python, "-m", "pip", "install", EXTRAS),
        f"export {PYTHON_VARIABLE}={python}",
    )
