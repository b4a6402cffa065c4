"""Commands whose parameters are put together from tables and other functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any


def takes(function: Callable[..., Any], parameters: Iterable[inspect.Parameter]) -> None:
    """Give a function, which takes anything, the parameters that typer is to see in it."""
    signature = inspect.Signature(list(parameters))
    # Python looks for this attribute (PEP 362), but functions do not declare it.
    function.__signature__ = signature  # type: ignore[attr-defined]
    function.__annotations__ = {name: each.annotation for name, each in signature.parameters.items()}
