"""What several models are tried with: inputs are called "MODEL/INPUT" there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ..executor.model import Model, with_samples
from ..executor.samples import Samples
from ..formulations.errors import InvalidInputError


def tried_with(models: Iterable[Model], samples: Samples | None) -> list[Model]:
    """Return models that are tried with some inputs; None: as they are.

    Of several models, each takes those whose names begin with its own and a slash; one for which there are
    none stays as it is.
    """
    known = list(models)
    if samples is None:
        return known
    if len(known) == 1:
        return [with_samples(model, samples) for model in known]
    names = [model.network.name for model in known]
    stray = {name for name in samples.names if name.partition("/")[0] not in names}
    if stray:
        raise InvalidInputError(
            f"the inputs {', '.join(map(repr, sorted(stray)))} are for no model: of several models they are "
            f"called MODEL/INPUT, the models are {', '.join(names)}"
        )
    return list(_each(known, samples))


def _each(models: Iterable[Model], samples: Samples) -> Iterator[Model]:
    for model in models:
        own = samples.of(f"{model.network.name}/")
        yield with_samples(model, own) if own.names else model


def named_with(models: Mapping[str, Model], samples: Samples | None) -> dict[str, Model]:
    """Return models by their names, tried with some inputs; errors as for `tried_with`."""
    return dict(zip(models, tried_with(models.values(), samples), strict=True))
