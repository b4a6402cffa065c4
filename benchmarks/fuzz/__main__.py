"""Open thousands of damaged files: `python -m benchmarks.fuzz --seed 1`.

Each file is a valid one with random damage, made again from the seed, its kind and its number alone
(`--only onnx:4711`). It is opened as the commands do it, in a child process with a limit of memory, which is
watched for deaths and hangs. A file that was neither opened nor refused by a printable error is kept.
What a child did not survive is tried again by the real command, which must refuse it in its own child.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from gapless.executor.engines.helper import Helper
from gapless.formulations.errors import GaplessError

from .damage import BYTE_DAMAGE, Damage
from .documents import DOCUMENT_DAMAGE, valid_documents
from .models import MODEL_DAMAGE, valid_models

ROLE = "benchmarks.fuzz.opening:serve"
PATIENCE_S = 60.0
_TWICE = 0.15
_GOOD = ("opened", "refused")


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """Files of one kind, valid, and how they are damaged."""

    kind: str
    files: Mapping[str, bytes]
    damage: Sequence[Damage]

    def case(self, seed: int, number: int) -> bytes:
        """Return a damaged file; always the same."""
        random = Random(f"{seed}:{self.kind}:{number}")
        others = list(self.files.values())
        data = random.choice(others)
        damaged = random.choice(self.damage)(random, data, others)
        if random.random() < _TWICE:  # by bytes: parts can be edited only in what is still valid
            damaged = random.choice(BYTE_DAMAGE)(random, damaged or b"\0", others)
        return damaged


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A file that was neither opened nor refused."""

    case: str
    verdict: str
    path: Path


def corpus(kind: str, folder: Path) -> Corpus:
    """Return the files of a kind: "onnx" or "json"; made in a folder."""
    if kind == "onnx":
        return Corpus(kind=kind, files=valid_models(), damage=MODEL_DAMAGE)
    return Corpus(kind=kind, files=valid_documents(folder), damage=DOCUMENT_DAMAGE)


def fuzz(
    found: Corpus, seed: int, numbers: Sequence[int], keep: Path, *, counts: Counter[str]
) -> Iterator[Failure]:
    """Open damaged files, and yield those that failed, which are kept in a folder.

    Parameters
    ----------
    found
        What is damaged.
    seed, numbers
        Which cases.
    keep
        Folder for files that failed.
    counts
        How many were opened and refused, and how many failed; filled in.
    """
    with tempfile.TemporaryDirectory() as folder, Helper("fuzz", ROLE, {}) as helper:
        path = Path(folder) / f"case.{found.kind}"
        for number in numbers:
            data = found.case(seed, number)
            path.write_bytes(data)
            question = {"kind": "open", "what": found.kind, "path": str(path), "case": number}
            try:
                verdict = str(helper.ask(question, limit_s=PATIENCE_S)["verdict"])
            except GaplessError as error:
                verdict = f"death or hang: {error}"
            if verdict not in _GOOD and found.kind == "onnx" and _is_death(verdict):
                verdict = _by_the_command(path, verdict)
            counts[verdict.partition(":")[0] if verdict not in _GOOD else verdict] += 1
            if verdict not in (*_GOOD, _CONTAINED):
                kept = keep / f"{seed}-{number}.{found.kind}"
                keep.mkdir(parents=True, exist_ok=True)
                kept.write_bytes(data)
                yield Failure(case=f"{found.kind}:{number}", verdict=verdict, path=kept)


_CONTAINED = "ended its child, refused by gapless tools inspect"


def _is_death(verdict: str) -> bool:
    return verdict.startswith("death or hang") or verdict == "met the memory limit"


def _by_the_command(path: Path, verdict: str) -> str:
    """Return what `gapless tools inspect` makes of a model that ended its child here."""
    words = [sys.executable, "-m", "gapless", "tools", "inspect", str(path)]
    try:
        run = subprocess.run(words, capture_output=True, text=True, check=False, timeout=5 * PATIENCE_S)
    except subprocess.TimeoutExpired:
        return f"{verdict}; gapless tools inspect hangs"
    clean = run.returncode in (0, 2) and "Traceback" not in run.stderr
    return _CONTAINED if clean else f"{verdict}; gapless tools inspect: {run.returncode} {run.stderr[-300:]}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; 1: a file failed."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.fuzz", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--seed", type=int, default=1, help="makes the same files again")
    parser.add_argument("--onnx", type=int, default=20_000, help="how many damaged models")
    parser.add_argument("--json", type=int, default=50_000, help="how many damaged JSON files")
    parser.add_argument("--only", metavar="KIND:NUMBER", help="one case, e.g. onnx:4711")
    parser.add_argument("--keep", type=Path, default=Path("out/fuzz"), help="folder for files that fail")
    options = parser.parse_args(arguments)
    wanted = {"onnx": range(options.onnx), "json": range(options.json)}
    if options.only:
        kind, _, number = options.only.partition(":")
        wanted = {kind: range(int(number), int(number) + 1)}
    failed = 0
    for kind, numbers in wanted.items():
        counts: Counter[str] = Counter()
        started = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            made = corpus(kind, Path(folder)) if numbers else None
        for failure in fuzz(made, options.seed, numbers, options.keep, counts=counts) if made else ():
            failed += 1
            print(
                f"FAILED seed {options.seed} {failure.case}, kept as {failure.path}: {failure.verdict}",
                flush=True,
            )
        took = time.monotonic() - started
        said = ", ".join(f"{count} {what}" for what, count in counts.most_common()) or "none"
        print(f"seed {options.seed}, {len(numbers)} damaged {kind} files in {took:.0f} s: {said}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
