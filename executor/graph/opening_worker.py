"""The child process that opens model files; see `opening`."""

from __future__ import annotations

import resource
from collections.abc import Mapping
from typing import Any

from ...formulations.errors import InvalidInputError, OpenShapesError
from ..engines.cache import default_cache
from ..workers import Link, Message
from .choices import Simplification
from .model_file import Watch
from .preparing import prepare


def serve(link: Link, settings: Mapping[str, Any]) -> None:
    """Role of the child: open one file for each message.

    `link`: each question names the "path", the "shapes" by input, the "simplification", whether to
    "materialize" and whether what is made is "compared" with the file. The answers say which "step" begins,
    the "size" of the model, and at the end what was "prepared" or why it was "refused", or that the "memory"
    did not suffice. `settings`: "target": path of the file for the simplified model; "least_bytes",
    "bytes_per_byte": the memory that may be taken, and that for each byte of a model.
    """
    while (question := link.receive()) is not None:
        watch = _Watch(link, settings)
        try:
            answer = _opened(question, settings["target"], watch)
        except InvalidInputError as error:
            shapes = isinstance(error, OpenShapesError)
            answer = {
                "kind": "refused",
                "message": error.message,
                "problems": error.problems,
                "shapes": shapes,
            }
        except MemoryError:
            answer = {"kind": "memory", "bytes": watch.most_bytes}
        except Exception as error:  # of somebody else's code; the parent knows the step
            text = " ".join(str(error).split())[:300]
            answer = {"kind": "error", "type": "", "text": f"{type(error).__name__}: {text}"}
        watch.lift()
        link.send(answer)


def _opened(question: Message, target: str, watch: _Watch) -> Message:
    watch.step("reading the file")
    watch.size(0)
    shapes = {name: tuple(shape) for name, shape in question["shapes"].items()}
    prepared = prepare(
        question["path"],
        shapes=shapes,
        materialize=question["materialize"],
        simplification=Simplification(question["simplification"]),
        compared=question["compared"],
        watch=watch,
        cache=default_cache(),
    )
    watch.step("writing the simplified model")
    with open(target, "wb") as file:
        file.write(prepared.model.SerializeToString())
    return {
        "kind": "prepared",
        "digest": prepared.digest,
        "inputs": prepared.inputs,
        "shapes": prepared.shapes,
        "warnings": prepared.warnings,
    }


class _Watch(Watch):
    """Tells the parent, and keeps the memory limit."""

    def __init__(self, link: Link, settings: Mapping[str, Any]) -> None:
        self._link = link
        self._settings = settings
        self.most_bytes = 0

    def step(self, name: str) -> None:
        """Tell the parent."""
        self._link.send({"kind": "step", "name": name})

    def size(self, count: int) -> None:
        """Tell the parent, and allow memory in proportion."""
        self._link.send({"kind": "size", "bytes": count})
        self.most_bytes = self._settings["least_bytes"] + self._settings["bytes_per_byte"] * count
        _limit(self.most_bytes)

    def lift(self) -> None:
        """Allow any memory: to answer takes some, too."""
        _limit(resource.RLIM_INFINITY)


def _limit(most_bytes: int) -> None:
    """Limit the private memory of this process; what is merely reserved is free."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard != resource.RLIM_INFINITY:
        most_bytes = hard if most_bytes == resource.RLIM_INFINITY else min(most_bytes, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most_bytes, hard))
