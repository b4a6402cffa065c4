"""Exported folders on disk: written at once, and never over files of somebody else."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from ...formulations.errors import InvalidInputError
from ...formulations.files import dump, load, save
from ..runner import UNCHECKED, Verification
from .drawing import Drawing
from .manifest import EXPORT, MANIFEST_NAME, RUNNER_NAME, SCRIPT_NAME, Manifest

_EXECUTABLE = (RUNNER_NAME, SCRIPT_NAME)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """An export that was written."""

    folder: Path
    manifest: Manifest  # its content, digests included
    bytes: dict[str, int]  # size of each file by name, the manifest among them
    notes: tuple[str, ...] = ()  # what the user should know


def load_manifest(folder: str | Path) -> Manifest:
    """Read the manifest of an exported folder; errors as for `formulations.files.load`."""
    return load(Path(folder) / MANIFEST_NAME, EXPORT)


def changed_files(folder: str | Path) -> tuple[str, ...]:
    """Return the files of an export that are missing, or not as its manifest says."""
    place = Path(folder)
    files = load_manifest(place).files
    return tuple(name for name, digest in files.items() if _digest_of(place / name) != digest)


def require_free(folder: Path) -> None:
    """Refuse a folder that an export may not be written to: one that holds something else."""
    if not os.path.lexists(folder):
        if not folder.absolute().parent.is_dir():
            raise InvalidInputError(f"cannot write {folder}: the folder {folder.parent} does not exist")
        return
    if not folder.is_dir():
        raise InvalidInputError(f"cannot write {folder}: it is a file, and a folder is needed")
    if not any(folder.iterdir()):
        return
    if not (folder / MANIFEST_NAME).exists():
        raise InvalidInputError(
            f"{folder} holds files, but no {MANIFEST_NAME} of an older export: name a new or empty folder"
        )
    edited = [name for name in changed_files(folder) if os.path.lexists(folder / name)]
    if edited:
        raise InvalidInputError(
            f"{', '.join(edited)} in {folder} changed since the last export, and would be overwritten: "
            "name another folder, or move them away"
        )


Check = Callable[[Path, Manifest], Verification]
"""Compares the numbers of an export that lies in a folder."""


def write_export(drawing: Drawing, folder: Path, check: Check | None = None) -> Exported:
    """Write an export; one that is there already is replaced, and what else lies beside it stays.

    Before it is put there, it is checked; None: it is not, and the manifest says so.
    """
    require_free(folder)
    try:
        with _workshop(folder) as place:
            files = {}
            for name, content in drawing.contents.items():
                (place / name).write_bytes(content())
                (place / name).chmod(0o755 if name in _EXECUTABLE else 0o644)
                files[name] = _digest_of(place / name) or ""
            manifest = replace(drawing.manifest, files=files, numbers=UNCHECKED)
            save(dump(manifest, EXPORT), place / MANIFEST_NAME)
            if check is not None:
                manifest = replace(manifest, numbers=check(place, manifest).words)
                save(dump(manifest, EXPORT), place / MANIFEST_NAME)
            sizes = {name: (place / name).stat().st_size for name in (*files, MANIFEST_NAME)}
            _put(place, folder, [*files, MANIFEST_NAME])
    except OSError as error:
        raise InvalidInputError(f"cannot write {folder}: {error.strerror or error}") from error
    return Exported(folder=folder, manifest=manifest, bytes=sizes, notes=drawing.notes)


@contextmanager
def _workshop(folder: Path) -> Iterator[Path]:
    """Yield a new folder on the same disk, which is gone afterwards unless it was renamed."""
    beside = folder if folder.is_dir() else folder.absolute().parent
    place = Path(tempfile.mkdtemp(dir=beside, prefix=".gapless-export-"))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _put(place: Path, folder: Path, names: list[str]) -> None:
    """Move an export to where it belongs: at once where nothing is there, else file by file.

    The manifest comes last: until then the runner refuses files that are not those of the older one.
    """
    if not folder.is_dir():
        place.chmod(0o755)
        os.replace(place, folder)
        return
    old = set(load_manifest(folder).files) - set(names) if (folder / MANIFEST_NAME).exists() else set()
    for name in names:
        os.replace(place / name, folder / name)
    for name in old:
        (folder / name).unlink(missing_ok=True)


def _digest_of(path: Path) -> str | None:
    try:
        with path.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError:
        return None
