"""How long a message takes (EPipe 3.1.2, Eq. 3), fitted to messages that were measured, and how well.

EPipe adds up what delays a message of x bytes, where b is the bandwidth of the link, T_q the present queuing
delay, x_now the present traffic on the link and xa_now its average over all links:

    T = w1 x + x / b + w2 T_q + w3 (x_now - x) + w4 (xa_now - xa) + e                                      (3)

As long as nothing else is on its way, x_now = 0, and w1 x + w3 (0 - x) = (w1 - w3) x: w1 and w3 cannot be
told apart; and xa, the average of a plan that is this one message, is a multiple of x, so the same holds for
w4. What is fitted here is therefore the same function with the differences written out,

    T = w1 x + x / b + w2 T_q + w3 x_now + w4 xa_now + e,

where w1 stands for EPipe's w1 - w3 - w4 xa / x. Without traffic w1 and e are fitted, no others. What is
fitted is at least 0 (a message is not made quicker by what delays it): the time of a byte w1 + 1 / b, w2, w3,
w4 and e, by non-negative least squares of *relative* errors: with absolute ones the largest messages alone
would say what a small one takes. They are relative to what is predicted (relative to what was measured, a
message that a busy machine held up would hardly count, and all predictions would be too low), and errors
beyond `_FAR` count in proportion, not squared (Huber). As b is measured with messages, too, w1 alone may be a
little below 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import groupby
from statistics import median, quantiles
from typing import TYPE_CHECKING

from ...formulations.cluster import Link
from ...formulations.errors import InvalidInputError
from ...formulations.validation import MAX_COUNT
from .samples import Links, Load, MeasuredLink, MessageSample, Purpose

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    _Array = NDArray[np.float64]

_FAR = 0.1
_ROUNDS = 8
_RESAMPLES = 200
_US = 1_000_000
KEPT = 1000
"""Messages of running pipelines that are fitted: the last ones."""

WINDOW = 32
"""Messages that drift is judged by."""

LEAST_DRIFT = 0.1
"""Relative error that is no drift: plans hardly change with a tenth of the time of a message."""

_LEAST_KINDS = 4
"""Least number of messages with traffic for which w2, w3 and w4 are fitted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """A fitted number with its confidence: 95 % of the fits to resampled messages lie between.

    `value`, `low`, `high`: microseconds a byte; w2 has no unit, e microseconds.
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The parameters of Eq. 3 in the form above; None: there was no traffic to fit it to."""

    w1: Weight
    e: Weight
    w2: Weight | None = None
    w3: Weight | None = None
    w4: Weight | None = None


@dataclass(frozen=True, kw_only=True)
class FittedNumbers:
    """A link in numbers.

    `source`, `target`: its devices.
    """

    source: str
    target: str
    bytes_per_second: float  # its bandwidth b: the median of the largest messages that were sent alone
    weights: Weights  # what was fitted
    usual_error: float  # relative error that 90 % of the messages stay below to which it was fitted


@dataclass(frozen=True, kw_only=True)
class LinkFit(FittedNumbers):
    """A link as it is predicted.

    Attributes
    ----------
    calibrated, seen
        The messages that it was calibrated with, and the last `KEPT` of running pipelines.
    """

    calibrated: tuple[MessageSample, ...]
    seen: tuple[MessageSample, ...] = ()

    def predict_us(
        self, size: int, *, queue_us: float = 0.0, traffic_bytes: float = 0, mean_traffic_bytes: float = 0
    ) -> float:
        """Return how long a message of a given number of bytes takes, microseconds; see `MessageSample`."""
        features = (size, queue_us, traffic_bytes, mean_traffic_bytes, 1.0)
        return self.bandwidth_us(size) + sum(
            factor * feature for factor, feature in zip(self._factors, features, strict=True)
        )

    def bandwidth_us(self, size: int) -> float:
        """Return what bandwidth alone says: x / b, microseconds."""
        return size * _US / self.bytes_per_second

    def error(self, sample: MessageSample) -> float:
        """Return the relative error of the prediction of a message; above 0: it was quicker."""
        return self._predicted(sample) / sample.latency_us - 1

    def bandwidth_error(self, sample: MessageSample) -> float:
        """Return the relative error of bandwidth alone."""
        return self.bandwidth_us(sample.size) / sample.latency_us - 1

    @property
    def summary(self) -> FittedNumbers:
        """The numbers alone, without the messages."""
        return FittedNumbers(**{field.name: getattr(self, field.name) for field in fields(FittedNumbers)})

    def link(self) -> Link:
        """Return it as planners take it: a latency and a speed that hold while nothing else is sent."""
        us_a_byte = _US / self.bytes_per_second + self.weights.w1.value
        speed = MAX_COUNT if us_a_byte * MAX_COUNT <= _US else max(1, round(_US / us_a_byte))
        return Link(
            source=self.source,
            target=self.target,
            bytes_per_second=speed,
            latency_us=math.ceil(self.weights.e.value),
        )

    def update(self, samples: Sequence[MessageSample]) -> LinkFit:
        """Return the link fitted anew, with messages of running pipelines beside those that calibrated it.

        A pipeline sends messages of one size, which say nothing about others. So after a drift the times of
        calibration are multiplied by what the drifted messages took, of what was predicted, and messages
        that were seen before are forgotten.
        """
        if not self.drifted(samples):
            return _fit(self.source, self.target, self.calibrated, (*self.seen, *samples)[-KEPT:])
        recent = tuple(samples[-WINDOW:])
        change = median(one.latency_us / self._predicted(one) for one in recent)
        calibrated = tuple(replace(one, latency_us=change * one.latency_us) for one in self.calibrated)
        return _fit(self.source, self.target, calibrated, recent)

    @property
    def drift_limit(self) -> float:
        """Relative error from which on `drifted` says so.

        A message errs by more than `usual_error` once in ten times while nothing has changed. That half of
        `WINDOW` messages do so has then a probability of 3e-8 (binomial), so a median beyond it means that
        the link has changed.
        """
        return max(LEAST_DRIFT, self.usual_error)

    def drifted(self, recent: Sequence[MessageSample]) -> bool:
        """Return whether the last `WINDOW` messages took another time than is predicted; False for fewer."""
        last = recent[-WINDOW:]
        return len(last) == WINDOW and median(abs(self.error(one)) for one in last) > self.drift_limit

    @cached_property
    def _factors(self) -> tuple[float, ...]:
        one = self.weights
        return tuple(0.0 if w is None else w.value for w in (one.w1, one.w2, one.w3, one.w4, one.e))

    def _predicted(self, sample: MessageSample) -> float:
        return self.predict_us(
            sample.size,
            queue_us=sample.queue_us,
            traffic_bytes=sample.traffic_bytes,
            mean_traffic_bytes=sample.mean_traffic_bytes,
        )


def fit_link(measured: MeasuredLink) -> LinkFit:
    """Return the model of a link, fitted to the messages that were sent for it.

    Raises
    ------
    InvalidInputError
        Fewer than two sizes were sent alone.
    """
    return _fit(measured.source, measured.target, measured.of(Purpose.FIT), ())


def _fit(
    source: str, target: str, calibrated: tuple[MessageSample, ...], seen: tuple[MessageSample, ...]
) -> LinkFit:
    alone = [one for one in calibrated if one.load is Load.IDLE]
    if len({one.size for one in alone}) < 2:
        raise InvalidInputError(
            f"the link from {source} to {target} cannot be fitted: messages of two sizes or more must have "
            "been sent while nothing else was on its way"
        )
    largest = max(one.size for one in alone)
    us_a_byte = median(one.latency_us for one in alone if one.size == largest) / largest
    samples = (*calibrated, *seen)
    loaded = sum(_has_traffic(one) for one in samples) >= _LEAST_KINDS
    weights = _weights(samples, us_a_byte=us_a_byte, loaded=loaded)
    found = LinkFit(
        source=source,
        target=target,
        bytes_per_second=_US / us_a_byte,
        weights=weights,
        usual_error=0.0,
        calibrated=calibrated,
        seen=seen,
    )
    errors = [abs(found.error(one)) for one in samples]
    return replace(found, usual_error=quantiles(errors, n=10, method="inclusive")[-1])


def _weights(samples: Sequence[MessageSample], *, us_a_byte: float, loaded: bool) -> Weights:
    import numpy as np

    columns, times = _system(samples, loaded=loaded)
    best = _solved(columns, times, start=times, rounds=_ROUNDS)
    random = np.random.default_rng(0)
    fits = []
    for _ in range(_RESAMPLES):
        chosen = random.integers(len(samples), size=len(samples))
        left = columns[chosen]
        fits.append(_solved(left, times[chosen], start=left @ best, rounds=2))
    low, high = np.percentile(np.array(fits), (2.5, 97.5), axis=0)
    for fitted in (best, low, high):
        fitted[0] -= us_a_byte
    found = [
        Weight(value=float(value), low=float(a), high=float(b))
        for value, a, b in zip(best, low, high, strict=True)
    ]
    if not loaded:
        return Weights(w1=found[0], e=found[1])
    return Weights(w1=found[0], e=found[1], w2=found[2], w3=found[3], w4=found[4])


def _system(samples: Sequence[MessageSample], *, loaded: bool) -> tuple[_Array, _Array]:
    """Return the factors of the weights, a row for each message, and what the messages took."""
    import numpy as np

    fields = ("size", "queue_us", "traffic_bytes", "mean_traffic_bytes") if loaded else ("size",)
    rows = [[getattr(one, fields[0]), 1.0, *(getattr(one, name) for name in fields[1:])] for one in samples]
    return np.array(rows, dtype=float), np.array([one.latency_us for one in samples])


def _solved(columns: _Array, times: _Array, *, start: _Array, rounds: int) -> _Array:
    """Return the weights of least relative errors, by least squares that are weighted anew a few times.

    `start` is a prediction to begin with.
    """
    import numpy as np
    from scipy.optimize import nnls

    predicted, found = np.maximum(start, 1e-3 * times), times[:0]
    for _ in range(rounds):
        far = np.abs(times - predicted) / predicted
        weights = np.sqrt(_FAR / np.maximum(far, _FAR)) / predicted
        left = columns * weights[:, None]
        scale = np.maximum(np.linalg.norm(left, axis=0), 1e-30)  # bytes and microseconds differ by 10^7
        found = nnls(left / scale, times * weights)[0] / scale
        predicted = np.maximum(columns @ found, 1e-3 * times)
    return found


def _has_traffic(sample: MessageSample) -> bool:
    return bool(sample.traffic_bytes or sample.mean_traffic_bytes)


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
