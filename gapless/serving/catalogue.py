"""Models as clients ask for them: by name and version, and whether each is loaded."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

from ..executor.coordination.coordinator import Coordinator
from ..executor.coordination.registration import Registered
from ..formulations.errors import GaplessError, InvalidInputError
from ..formulations.validation import shown
from .messages import Refusal

_WITH_VERSION = re.compile(r"(.+):([1-9][0-9]{0,8})", re.ASCII)


class State(StrEnum):
    """Of a model, in the words of Triton's repository index."""

    READY = "READY"
    LOADING = "LOADING"
    UNLOADING = "UNLOADING"
    UNAVAILABLE = "UNAVAILABLE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One version of a model.

    `key`: the name by which the coordinator knows it; `reason`: why it cannot be used, if it cannot.
    """

    name: str
    version: str
    key: str
    state: State
    reason: str = ""


def split_version(key: str) -> tuple[str, str]:
    """Return name and version of a model that is registered as NAME or NAME:VERSION."""
    found = _WITH_VERSION.fullmatch(key)
    return (found[1], found[2]) if found else (key, "1")


class Catalogue:
    """The models of a coordinator, by name and version. Any thread may ask.

    `parts`: further models that come and go with one, which clients do not see: its batches.
    """

    def __init__(self, coordinator: Coordinator, parts: Mapping[str, Collection[str]] | None = None) -> None:
        self._coordinator = coordinator
        self._parts = parts or {}
        hidden = {part for some in self._parts.values() for part in some}
        self._keys: dict[str, dict[str, str]] = {}
        self._changing: dict[str, State] = {}
        self._reasons: dict[str, str] = {}
        self._lock = threading.Lock()
        for key in [key for key in coordinator.known if key not in hidden]:
            name, version = split_version(key)
            if version in (versions := self._keys.setdefault(name, {})):
                raise InvalidInputError(f"{versions[version]!r} and {key!r} are both version {version}")
            versions[version] = key

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all models."""
        return tuple(self._keys)

    def versions(self, name: str) -> tuple[str, ...]:
        """Return the versions of a model that are loaded, the oldest first."""
        loaded = self._coordinator.registered
        return tuple(sorted((v for v, key in self._of(name).items() if key in loaded), key=int))

    def find(self, name: str, version: str = "", *, leaving: Collection[str] = ()) -> tuple[Registered, str]:
        """Return a loaded model and its version; empty: the newest one that is loaded.

        `leaving`: those that count although they are being unloaded.
        Raises Refusal: there is none, or it is not loaded.
        """
        known, loaded = self._of(name), self._coordinator.registered
        if version and version not in known:
            there = ", ".join(sorted(known, key=int))
            raise Refusal(404, f"model {name!r} has the versions {there} only, not {shown(version)}")
        for each in [version] if version else sorted(known, key=int, reverse=True):
            leaves = self._changing.get(known[each]) is State.UNLOADING and known[each] not in leaving
            if not leaves and (found := loaded.get(known[each])) is not None:
                return found, each
        (entry,) = [each for each in self.entries() if each.key == known[version or max(known, key=int)]]
        raise Refusal(
            503,
            f"model {name!r} is not loaded ({entry.reason or entry.state.lower()}); "
            f"POST /v2/repository/models/{name}/load loads it",
        )

    def entries(self) -> list[Entry]:
        """Return all models and their states."""
        loaded, changing, reasons = self._coordinator.registered, dict(self._changing), dict(self._reasons)
        found = []
        for name, versions in self._keys.items():
            for version, key in sorted(versions.items(), key=lambda each: int(each[0])):
                state = changing.get(key, State.READY if key in loaded else State.UNAVAILABLE)
                reason = reasons.get(key, "unloaded") if state is State.UNAVAILABLE else ""
                found.append(Entry(name=name, version=version, key=key, state=state, reason=reason))
        return found

    def load(self, name: str) -> None:
        """Load all versions of a model; returns when they take requests. Errors as for `Coordinator.load`."""
        self._change(name, State.LOADING, self._coordinator.load)

    def unload(self, name: str) -> None:
        """Unload all versions of a model; returns when they are gone. Errors as for `Coordinator.unload`."""
        self._change(name, State.UNLOADING, self._coordinator.unload)

    def _change(self, name: str, state: State, change: Callable[[str], object]) -> None:
        for key in self._of(name).values():
            with self.shown(key, state):
                for each in (key, *self._parts.get(key, ())):
                    change(each)

    def keys(self, name: str) -> tuple[str, ...]:
        """Return the names of all versions of a model, as the coordinator knows them."""
        return tuple(self._of(name).values())

    @contextmanager
    def shown(self, key: str, state: State) -> Iterator[None]:
        """Show meanwhile what becomes of a model."""
        with self._lock:
            self._changing[key] = state
            self._reasons.pop(key, None)
        try:
            yield
        except GaplessError as error:
            self._reasons[key] = str(error)
            raise
        finally:
            with self._lock:
                self._changing.pop(key, None)

    def _of(self, name: str) -> Mapping[str, str]:
        found = self._keys.get(name)
        if found is None:
            raise Refusal(404, f"no model {shown(name)}; there are {', '.join(map(repr, self._keys))}")
        return found
