"""How well links are predicted: Eq. 3 beside bandwidth alone (EPipe, Fig. 2), on messages not fitted to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median, quantiles

from .fitting import LinkFit
from .samples import Links, Load, MessageSample, Purpose

FAR = 0.2
"""Relative errors above it are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Relative errors of predicted times, without their signs.

    `median`, `p90`: the middle one, and the one that 90 % are not above.
    """

    median: float
    p90: float
    far: float  # share above `FAR`

    @classmethod
    def of(cls, errors: Iterable[float]) -> Errors:
        """Return what some errors are like; at least one."""
        sizes = [abs(error) for error in errors]
        p90 = quantiles(sizes, n=10, method="inclusive")[-1] if len(sizes) > 1 else sizes[0]
        return cls(median=median(sizes), p90=p90, far=sum(size > FAR for size in sizes) / len(sizes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Predictions of some messages.

    `load`, `purpose`: what else travelled, and whether the messages were fitted; `fit`, `bandwidth`: errors
    of Eq. 3 and of bandwidth alone.
    """

    load: Load
    purpose: Purpose
    size: int | None  # their bytes; None: of several sizes
    messages: int  # how many
    latency_us: float  # the median of what they took
    fit: Errors
    bandwidth: Errors


def checks_by_size(links: Links, fits: Sequence[LinkFit]) -> tuple[Check, ...]:
    """Return how well messages of each size are predicted, over all links; shards are left out."""
    return _checks(links, fits, lambda one: one.purpose is not Purpose.SHARD, _size)


def checks_in_short(links: Links, fits: Sequence[LinkFit]) -> tuple[Check, ...]:
    """Return how well messages that were not fitted are predicted, with each load, and the shards."""
    return _checks(links, fits, lambda one: one.purpose is not Purpose.FIT, _kind)


_Key = Callable[[MessageSample], tuple[int, ...]]
_LOADS, _PURPOSES = tuple(Load), tuple(Purpose)


def _kind(one: MessageSample) -> tuple[int, ...]:
    return _LOADS.index(one.load), _PURPOSES.index(one.purpose)


def _size(one: MessageSample) -> tuple[int, ...]:
    return _LOADS.index(one.load), one.size


def _checks(
    links: Links, fits: Sequence[LinkFit], wanted: Callable[[MessageSample], bool], key: _Key
) -> tuple[Check, ...]:
    by_link: Mapping[tuple[str, str], LinkFit] = {(fit.source, fit.target): fit for fit in fits}
    pairs = [
        (one, by_link[link.source, link.target])
        for link in links.links
        for one in link.samples
        if wanted(one)
    ]
    found = []
    for _, group in groupby(sorted(pairs, key=lambda pair: key(pair[0])), lambda pair: key(pair[0])):
        members = list(group)
        first = members[0][0]
        found.append(
            Check(
                load=first.load,
                purpose=first.purpose,
                size=first.size if key is _size else None,
                messages=len(members),
                latency_us=median(one.latency_us for one, _ in members),
                fit=Errors.of(fit.error(one) for one, fit in members),
                bandwidth=Errors.of(fit.bandwidth_error(one) for one, fit in members),
            )
        )
    return tuple(found)
