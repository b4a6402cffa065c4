"""The plans that differ from a plan in which devices of one kind they use."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product

from ...formulations.pipelines.plans import Pipes, ordered


def copies(pipes: Pipes, kinds: tuple[int, ...]) -> Iterator[Pipes]:
    """Yield every plan with the same cuts on devices of the same kinds, each once."""
    of_kind = {kind: [device for device, own in enumerate(kinds) if own == kind] for kind in set(kinds)}
    places: dict[int, list[int]] = {}
    for *_, device in (part for pipe in pipes for part in pipe):
        places.setdefault(kinds[device], []).append(device)
    seen = set()
    for choice in product(*(permutations(of_kind[kind], len(used)) for kind, used in places.items())):
        other = {
            device: new
            for used, chosen in zip(places.values(), choice, strict=True)
            for device, new in zip(used, chosen, strict=True)
        }
        plan = ordered(tuple(tuple((i, j, other[device]) for i, j, device in pipe) for pipe in pipes))
        if plan not in seen:
            seen.add(plan)
            yield plan
