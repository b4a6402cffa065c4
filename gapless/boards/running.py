"""Commands by their names and options, run on a board: for the command line and for Python."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..executor.progress import Report, silent
from ..files.run import Entry
from ..formulations.errors import BoardError
from ..question.fields import Given
from ..question.subjects import Folder
from .folder import Files, Place, RunFolder, new_run
from .packing import Packing
from .session import Order, Ran, perform
from .ssh import Address

GOES_ON = "; the same command with --resume goes on with what the board has measured"


def run_there(
    address: Address,
    command: str,
    said: Iterable[Given],
    subjects: Sequence[Any] = (),
    folder: Folder | None = None,
    *,
    general: Sequence[str] = (),
    line: str = "",
    terminals: Mapping[str, tuple[int, int]] = {},
    report: Report = silent,
    show: Callable[[str], object] = lambda text: None,
) -> Ran:
    """Run a command of gapless on a board.

    `said`: of its fields; files among them are taken there, and those that it writes are brought back.
    `subjects`: its arguments. `folder`: of a command that writes a run.
    Raises InvalidInputError: a file cannot be read or written, a folder holds another run, or an option has
    no meaning on a board.
    """
    with tempfile.TemporaryDirectory(prefix="gapless-board-") as scratch:

        def performed(packing: Packing, place: Place) -> Ran:
            first, *rest = packing.words(command, said, subjects, folder)
            words = (first, *general, *rest)
            order = Order(words=words, packing=packing, place=place, terminals=dict(terminals))
            return perform(address, order, report=report, show=show)

        if folder is None:
            packing = Packing(run=new_run(), scratch=Path(scratch))
            return performed(packing, Files(packing.results))
        entry = Entry(resume=folder.resume, overwrite=folder.overwrite)
        with RunFolder.entered(folder.out, entry, str(address), line=line) as place:
            try:
                return performed(Packing(run=place.board.run, scratch=Path(scratch)), place)
            except BoardError as error:
                raise BoardError(f"{error}{GOES_ON}" if place.begun else str(error)) from error
