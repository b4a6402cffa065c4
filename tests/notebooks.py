"""Notebooks run from top to bottom, and how their outputs are kept.

`python -m tests.notebooks NOTEBOOK ...` runs each one in a folder of its own and writes it with its outputs:
readers see them without running anything. Pictures are made small, and warnings are left out. What a notebook
measures is what this machine measured.
"""

from __future__ import annotations

import base64
import io
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import nbformat

ROOT = Path(__file__).parent.parent
PATHS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SECONDS_PER_CELL = 300
COLOURS = 48
"""Of a picture: lines, bars and letters need no more, and it takes a third of the bytes."""

Notebook = Any


def read(path: Path) -> Notebook:
    found: Notebook = nbformat.read(path, as_version=nbformat.NO_CONVERT)  # type: ignore[no-untyped-call]
    return found


def pictures_of(cell: Notebook) -> Iterator[bytes]:
    """Yield the pictures that a cell of code has drawn."""
    for output in cell.get("outputs", ()):
        if "image/png" in output.get("data", {}):
            yield base64.b64decode(output["data"]["image/png"])


def executed(notebook: Notebook, folder: Path, *, kernel: str = "") -> Notebook:
    """Run a notebook with this Python, in an empty folder; nothing is written to the user's home.

    `kernel`: the program of the kernel; empty: that of ipykernel.
    """
    from nbclient import NotebookClient

    here, home = folder / "here", folder / "jupyter" / "kernels" / "python3"
    here.mkdir()
    home.mkdir(parents=True)
    program = ["-c", kernel] if kernel else ["-m", "ipykernel_launcher"]
    argv = [sys.executable, *program, "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": "Python 3", "language": "python"}
    (home / "kernel.json").write_text(json.dumps(spec))
    settings = {
        "JUPYTER_PLATFORM_DIRS": "1",
        "JUPYTER_PATH": folder / "jupyter",
        "JUPYTER_DATA_DIR": folder / "data",
        "JUPYTER_CONFIG_DIR": folder / "config",
        "JUPYTER_RUNTIME_DIR": folder / "runtime",
        "IPYTHONDIR": folder / "ipython",
        "MPLCONFIGDIR": folder / "matplotlib",
        "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
    }
    with patch.dict(os.environ, {name: str(value) for name, value in settings.items()}):
        os.environ.pop("MPLBACKEND", None)
        client = NotebookClient(
            notebook,
            timeout=SECONDS_PER_CELL,
            kernel_name="python3",
            resources={"metadata": {"path": str(here)}},
        )
        client.execute()
    return notebook


def kept(notebook: Notebook) -> Notebook:
    """Return an executed notebook as it is stored: with the least metadata, and small pictures."""
    notebook.metadata.language_info = {"name": "python"}
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
        for output in cell.get("outputs", ()):
            if "metadata" in output:
                output.metadata = {}
            if "image/png" in output.get("data", {}):
                output.data = {"image/png": _small(output.data["image/png"]), "text/plain": "a picture"}
    return notebook


def _small(picture: str) -> str:
    from PIL import Image

    drawn = Image.open(io.BytesIO(base64.b64decode(picture))).convert("RGB")
    drawn.quantize(COLOURS, dither=Image.Dither.NONE).save(out := io.BytesIO(), "PNG", optimize=True)
    return base64.b64encode(out.getvalue()).decode()


if __name__ == "__main__":
    for name in sys.argv[1:]:
        with TemporaryDirectory() as place:
            done = kept(executed(read(Path(name)), Path(place)))
        nbformat.write(done, name)  # type: ignore[no-untyped-call]
