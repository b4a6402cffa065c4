"""What an executed deployment did: rates, latencies, times of every chunk, receipts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from ..formulations.deployment import Deployment
from ..formulations.validation import FileContent
from .engine import PlacementReceipt
from .machine.state import MachineState


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread(FileContent):
    """Order statistics of some samples."""

    median: float
    p95: float
    p99: float
    least: float
    most: float
    count: int

    @classmethod
    def of(cls, samples: Sequence[float]) -> Spread:
        """Return the order statistics of at least one sample; quantiles are samples, never between two."""
        ordered = sorted(samples)
        count = len(ordered)
        p95, p99 = (ordered[(count * percent + 99) // 100 - 1] for percent in (95, 99))
        return cls(median=median(ordered), p95=p95, p99=p99, least=ordered[0], most=ordered[-1], count=count)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkTimes(FileContent):
    """Times of one chunk over the measured requests, microseconds."""

    stream: str
    chunk: int
    """Name of the stream, and index of the chunk in it."""
    unit: str
    """Where it ran."""
    busy_us: Spread
    """From the moment the request was there until its outputs were in the slot: copies and run."""
    copy_in_us: Spread
    run_us: Spread
    copy_out_us: Spread
    """Its parts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamTimes(FileContent):
    """What one stream achieved."""

    stream: str
    """Its name."""
    requests: int
    """Requests that were measured, after the warm-up."""
    period_us: float
    """Time between two outputs, mean over the measured window."""
    latency_us: Spread
    """From the start of the first chunk to the end of the last, for each request; in a batch from its
    arrival. With several task slots it contains the waiting between chunks (`Deployment.latency_name`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkTimes(FileContent):
    """Messages of one stream from one device to the next."""

    stream: str
    """Name of the stream."""
    source: str
    target: str
    """Names of the devices."""
    size: int
    """Bytes of each message."""
    time_us: Spread
    """From the start of sending to the end of receiving; between two hosts as exact as their clocks agree."""
    queued_us: Spread
    """How long it waited before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitUse(FileContent):
    """What one unit did in the measured window."""

    unit: str
    """Its name."""
    busy_us: float
    """Its busy time per request of the deployment (per period), mean."""
    bubble_us: float
    """Its idle time between its first start and its last end, per request, mean; in a batch, of each round.
    """
    rss_bytes: int
    """Largest resident memory of its worker. Units that take turns have one worker: it stands with each of
    them, and is there once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement(FileContent):
    """One execution of a deployment.

    Attributes
    ----------
    deployment
        What ran.
    period_us
        Time between two outputs of the deployment as a whole, mean over the measured window. For streams
        of *one* network side by side (replicas): one over the sum of their rates. For different
        networks, and requests of a workload: the longest of their periods (each period brings one output
        of every one). For a batch: the mean makespan.
    period_blocks_us
        The same over consecutive blocks of the window: their spread says how steady it was.
    requests
        Measured requests over all streams.
    seconds
        Length of the measured window.
    streams, chunks, units
        Details.
    receipts
        One for each session.
    device
        On which device, as `gapless doctor` says it.
    taken_at
        When, ISO 8601 with the offset from UTC.
    makespan_us
        Of a batch: from the beginning of each round to its last output. None: it is no batch.
    machine
        What the machine was like meanwhile; None: it was not looked at, as on a simulated device.
    simulated
        Whether no device ran: a cost table was played.
    links
        Messages between devices, where there are several.
    """

    deployment: Deployment
    period_us: float
    period_blocks_us: tuple[float, ...]
    requests: int
    seconds: float
    streams: tuple[StreamTimes, ...]
    chunks: tuple[ChunkTimes, ...]
    units: tuple[UnitUse, ...]
    receipts: tuple[PlacementReceipt, ...] = ()
    device: str = ""
    taken_at: str = ""
    makespan_us: Spread | None = None
    machine: MachineState | None = None
    simulated: bool = False
    links: tuple[LinkTimes, ...] = ()

    @property
    def latency_us(self) -> Spread:
        """Latency of the slowest stream (by median)."""
        return max((stream.latency_us for stream in self.streams), key=lambda spread: spread.median)
