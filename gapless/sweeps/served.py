"""Tasks that come as JSON and are answered as JSON: what works for a sweep on another host.

`python -m gapless.sweeps.served FD PARENT` answers one task after the other, over a connection that it
inherits.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from multiprocessing.connection import Connection

from ..formulations.errors import GaplessError
from ..formulations.files import dump_problem, parse_problem
from ..formulations.json_files import dump
from ..formulations.network import Network
from ..formulations.processes import end_with_parent
from ..question.question import Question
from .answers import ANSWER, failed, problem_of, solved
from .tasks import Solving, SweepTask

Work = Callable[[bytes], bytes]


def task_document(task: SweepTask, network: Network | None) -> bytes:
    """Return a task as JSON: its whole problem, so that no file has to be there.

    Raises GaplessError: the problem is not valid, or has opaque rules, which are Python code.
    """
    problem = problem_of(task, network)
    said = {
        "problem": dump_problem(problem),
        "asked": task.base.asked.texts(),
        "solving": asdict(task.solving),
    }
    return json.dumps(said).encode()


def answer_document(document: bytes) -> bytes:
    """Return the answer to a task of `task_document` as JSON."""
    started, said = time.perf_counter(), json.loads(document)
    try:
        problem = parse_problem(said["problem"].encode(), name="the problem of a task")
        asked = Question.of_texts(said["asked"])
        answer = solved(problem, Solving(**said["solving"]), asked, started=started)
    except GaplessError as error:
        answer = failed(error, started)
    return dump(answer, ANSWER).encode()


def serve(connection: Connection, work: Work) -> None:
    """Answer what comes over a connection until its other end is closed."""
    while True:
        try:
            asked = connection.recv_bytes()
        except EOFError:
            return
        connection.send_bytes(work(asked))


if __name__ == "__main__":
    descriptor, parent = map(int, sys.argv[1:])
    end_with_parent(parent)
    os.dup2(2, 1)  # what backends print
    serve(Connection(descriptor), answer_document)
