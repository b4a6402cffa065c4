"""Run what `gapless export` has written into this folder: every chunk of the plan on its own unit.

Needs Python 3.10, numpy and the engine that manifest.json names (onnxruntime or MNN), but not gapless.

    python run.py                                       all chunks at once, on the inputs of the manifest
    python run.py --input in.npz --output out.npz       your inputs; the first dimension counts requests
    python run.py --chunk 0 --input in.npz --output cut.npz       one chunk alone

What comes out for the inputs of the manifest is compared with what the uncut model makes of them.
Exit codes: 0 ok, 2 bad input, 5 a chunk failed, 6 wrong numbers, 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from .crews import PendingRequest, Pipe, Processes, Threads, serve_chunk, write_frame
from .frames import Account, Frames, read_npz, write_npz
from .sessions import BAD_INPUT, FAILED, INTERRUPTED, WRONG, Export, OpenChunk, Stopped, pin_thread

NO_LIMIT = 1 << 30


class RequestFeeder:
    """Lets requests in, in threads of their own, and keeps as few on their way as the plan says.

    `total`: how many requests of each stream; where streams run side by side, of all of them together.
    """

    def __init__(self, export: Export, frames: Frames, crew: Threads | Processes, total: int) -> None:
        self._export, self._frames, self._crew = export, frames, crew
        self._numbers = iter(range(total))
        self.rounds: Any = export.data["rounds"]
        self._slots = [threading.Semaphore(stream["slots"]) for stream in export.streams]
        self._room = threading.Semaphore((self.rounds or {}).get("task_slots") or NO_LIMIT)
        self._left = threading.Semaphore(0)
        self.stopped = False
        streams = range(len(export.streams))
        self._lanes = [list(streams)] if self.rounds else [[stream] for stream in streams]
        if self.rounds and self.rounds["task_slots"] is None:
            self._lanes[0].sort(key=lambda stream: float(export.streams[stream]["arrival_us"]))

    def start(self) -> None:
        """Begin."""
        for lane in self._lanes:
            threading.Thread(target=self._feed, args=(lane,), daemon=True).start()

    def note_output(self, stream: int) -> None:
        """Make room: a request has left."""
        for semaphore in (self._slots[stream], self._room, self._left):
            semaphore.release()

    def _feed(self, lane: list[int]) -> None:
        for number in self._numbers:
            begins_ns = time.monotonic_ns()
            for stream in lane:
                self._slots[stream].acquire()
                self._room.acquire()
                arrives_ns = begins_ns + 1000 * self._export.streams[stream]["arrival_us"]
                time.sleep(max(0, arrives_ns - time.monotonic_ns()) / 1e9)
                if self.stopped:
                    return
                entered_ns = arrives_ns if self.rounds else time.monotonic_ns()
                self._crew.enter(
                    stream, PendingRequest(number, entered_ns, self._frames.inputs(stream, number))
                )
            if self.rounds and self.rounds["mode"] == "batch":
                for _ in lane:
                    self._left.acquire()
        for stream in lane:
            self._crew.enter(stream, None)


def words(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield what was measured, in lines for people."""
    yield f"{found['requests']} requests by {found['engine']}"
    by = f" for {found['predicted_engine']}" if found["predicted_engine"] else ""
    for name, ours, theirs in (
        ("period", "", ""),
        ("makespan", "", ""),
        ("latency", " with all task slots filled", ", waiting nowhere"),
    ):
        measured_us, predicted_us = found[f"{name}_us"], found[f"predicted_{name}_us"]
        if measured_us is not None:
            predicted = f" (predicted{by}: {predicted_us / 1000:.3f} ms{theirs})" if predicted_us else ""
            yield f"{name} {measured_us / 1000:.3f} ms{ours}{predicted}"
    if not found["compared"]:
        yield "the numbers were not compared: nothing is known about what should come out"
        return
    error = "without bound" if found["worst_error"] is None else f"{found['worst_error']:.1e}"
    yield (
        f"the numbers {'agree with' if found['agree'] else 'DIFFER FROM'} those of the uncut model: largest "
        f"relative error {error} ({found['tolerance']:g} is allowed)"
    )
    if found["wrong"]:
        yield found["wrong"]


def needs_processes(export: Export) -> bool:
    """Return whether one process is not enough: MNN has one pool of threads a process, for one unit."""
    several = [unit for unit in export.units.values() if (unit["threads"] or 1) > 1]
    return export.data["engine"] == "mnn" and len(several) > 1


def shared_units(export: Export) -> list[str]:
    """Return the units that serve more than one stream."""
    users = [{chunk["unit"] for chunk in stream["chunks"]} for stream in export.streams]
    return [name for name in export.units if sum(name in units for units in users) > 1]


def warn(export: Export) -> None:
    """Say what was part of the plan, and is not done here."""
    for unit in export.units.values():
        if unit["quota_permille"] is not None:
            share = f"{unit['quota_permille'] / 10:g} % of the time of its cores"
            sys.stderr.write(
                f"note: {unit['name']} was emulated with {share}; nothing holds it to that here\n"
            )


def run_all(export: Export, frames: Frames, asked: argparse.Namespace) -> Account:
    """Run all chunks side by side until every request has come out."""
    kind = Processes if asked.processes or needs_processes(export) else Threads
    shared = shared_units(export)
    if kind is Processes and shared:
        why = "" if asked.processes else "; and MNN has one pool of threads for all units of a process"
        text = f"{', '.join(shared)} serve several streams in order, which processes in a row cannot{why}"
        raise Stopped(text, BAD_INPUT)
    crew = kind(export, pinned=asked.pin)
    account = Account(export, frames, warm_up=asked.warm_up, keep=asked.output is not None)
    total = asked.requests + asked.warm_up
    feeder = RequestFeeder(export, frames, crew, total)
    try:
        crew.open()
        feeder.start()
        for _ in range(total * (len(export.streams) if export.data["rounds"] else 1)):
            event = crew.events.get()
            if isinstance(event, BaseException):
                raise event
            feeder.note_output(event[0])
            account.add(*event)
    finally:
        feeder.stopped = True
        crew.close()
    return account


def run_alone(export: Export, stream: int, asked: argparse.Namespace) -> None:
    """Run one chunk on the requests of a file, and write what has to be there after it into another one."""
    if asked.output is None:
        raise Stopped("--chunk with --input needs --output, too", BAD_INPUT)
    if asked.pin:
        pin_thread(export.units[export.streams[stream]["chunks"][asked.chunk]["unit"]])
    arrays = read_npz(asked.input, export.alive(stream, asked.chunk))
    chunk = OpenChunk(export, stream, asked.chunk, {})
    counts = {len(array) for array in arrays.values()}
    rows = [
        chunk.run({name: array[n, ...] for name, array in arrays.items()})
        for n in range(min(counts, default=0))
    ]
    if len(counts) != 1 or not rows:
        raise Stopped(f"{asked.input}: the first dimensions must count the same requests", BAD_INPUT)
    write_npz(asked.output, {name: np.stack([row[name] for row in rows]) for name in rows[0]})


def feed(export: Export, frames: Frames, stream: int, total: int, target: IO[bytes]) -> None:
    """Write inputs into a pipe, for the first of several processes in a row."""
    for number in range(total):
        job = PendingRequest(number, time.monotonic_ns(), frames.inputs(stream, number))
        write_frame(target, job, export.alive(stream, 0))
    write_frame(target, None, [])


def collect_outputs(export: Export, frames: Frames, stream: int, asked: argparse.Namespace) -> Account:
    """Take the outputs of the last of several processes in a row from standard input."""
    account = Account(export, frames, warm_up=asked.warm_up, keep=asked.output is not None)
    pipe = Pipe(sys.stdin.buffer, export.alive(stream, len(export.streams[stream]["chunks"])))
    while (job := pipe.read()) is not None:
        account.add(stream, job)
    return account


def options() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--requests", type=int, help="how many (rounds of a workload) count; otherwise 100, or all of --input"
    )
    parser.add_argument("--warm-up", type=int, default=5, help="requests before them that do not count")
    parser.add_argument("--input", type=Path, metavar="NPZ", help="inputs; REQUEST/INPUT for a workload")
    parser.add_argument("--expect", type=Path, metavar="NPZ", help="what should come out for them")
    parser.add_argument("--output", type=Path, metavar="NPZ", help="where the outputs go")
    parser.add_argument("--processes", action="store_true", help="a process for each chunk, not threads")
    parser.add_argument("--no-pin", dest="pin", action="store_false", help="let the system choose the cores")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--stream", metavar="NAME", help="which stream; needed where there are several")
    parser.add_argument(
        "--chunk", type=int, metavar="N", help="run this chunk alone: --input, --output, or pipes"
    )
    parser.add_argument("--feed", action="store_true", help="write inputs into the pipe to the first chunk")
    parser.add_argument("--collect", action="store_true", help="read the pipe from the last chunk")
    return parser


def act(asked: argparse.Namespace, target: IO[bytes]) -> int:
    """Do what is asked, and write what is found; return the exit code."""
    if asked.warm_up < 0 or (asked.requests is not None and asked.requests < 1):
        raise Stopped("--requests must be at least 1, and --warm-up at least 0", BAD_INPUT)
    export = Export()
    if asked.input is not None and asked.requests is None and asked.chunk is None:
        asked.warm_up = 0
    alone = asked.feed or asked.collect or asked.chunk is not None
    stream = find_stream(export, asked.stream) if alone else 0
    if asked.chunk is not None:
        if not 0 <= asked.chunk < len(export.streams[stream]["chunks"]):
            raise Stopped(f"there is no chunk {asked.chunk}: count from 0", BAD_INPUT)
        if asked.input is not None:
            run_alone(export, stream, asked)
        else:
            serve_chunk(export, stream, asked.chunk, target, pinned=asked.pin)
        return 0
    frames = Frames(export, asked.input, asked.expect)
    if asked.requests is None:
        asked.requests = 100 if asked.input is None else frames.count
    if asked.feed:
        feed(export, frames, stream, asked.requests + asked.warm_up, target)
        return 0
    warn(export)
    account = (
        collect_outputs(export, frames, stream, asked) if asked.collect else run_all(export, frames, asked)
    )
    if asked.output is not None:
        write_npz(asked.output, account.outputs())
    found = account.document()
    target.write(((json.dumps(found) if asked.json else "\n".join(words(found))) + "\n").encode())
    return WRONG if found["agree"] is False else 0


def find_stream(export: Export, name: str | None) -> int:
    """Return the number of a stream."""
    names = [stream["name"] for stream in export.streams]
    if name is None and len(names) == 1:
        return 0
    if name not in names:
        raise Stopped(f"--stream must be one of {', '.join(names)}", BAD_INPUT)
    return names.index(name)


def main() -> int:
    """Run the command line; return the exit code."""
    asked = options().parse_args()
    with os.fdopen(os.dup(1), "wb", buffering=0) as target:
        os.dup2(2, 1)  # engines print what they like
        try:
            return act(asked, target)
        except Stopped as error:
            sys.stderr.write(f"error: {error}\n")
            return error.code
        except KeyboardInterrupt:
            sys.stderr.write("interrupted\n")
            return INTERRUPTED
        except BrokenPipeError:
            sys.stderr.write("error: whoever reads the output has left\n")
            return FAILED


if __name__ == "__main__":
    # Engines that are still open must not be torn down beside threads that use them.
    os._exit(main())
