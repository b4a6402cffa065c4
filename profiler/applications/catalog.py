"""Built-in applications by name: pipelines of Python functions, opened like built-in networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...executor.callable_layers import CallableModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """One built-in application."""

    name: str
    locator: str  # where its pipeline stands, "module:NAME"
    about: str  # what it does, in a line

    def declared(self) -> CallableModel:
        """Return its pipeline as it is written, without running it."""
        from ...executor.callable_file import source_of
        from ...executor.callables import declared_in

        module, _, attribute = self.locator.partition(":")
        return declared_in(source_of(module), attribute)


_ENTRIES = {
    entry.name: entry
    for entry in (
        Application(
            name="cifar-alexnet-dense",
            locator=f"{__package__}.alexnet:DENSE_ALEXNET",
            about="a small convolutional network for a batch of images",
        ),
        Application(
            name="cifar-alexnet-sparse",
            locator=f"{__package__}.alexnet:SPARSE_ALEXNET",
            about="the same with pruned filters, as sparse matrices",
        ),
        Application(
            name="octree",
            locator=f"{__package__}.octree:OCTREE",
            about="an octree from a cloud of points: encode, sort, build trees",
        ),
    )
}


def applications() -> tuple[Application, ...]:
    """Return the built-in applications."""
    return tuple(_ENTRIES.values())


def application_named(name: str) -> Application | None:
    """Return the built-in application of a name, or None."""
    return _ENTRIES.get(name)
