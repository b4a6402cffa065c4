"""Where a network can be cut, and what is alive there."""

from __future__ import annotations

from dataclasses import dataclass

from ..formulations.network import Network
from ..formulations.validation import FileContent


@dataclass(frozen=True, slots=True, kw_only=True)
class CutSummary(FileContent):
    """One legal cut."""

    cut: int  # number of the layer behind it
    bytes: int  # bytes alive at it
    tensors: int  # number of tensors alive at it


def cut_summaries(network: Network) -> tuple[CutSummary, ...]:
    """Return the legal cuts of a network, in order."""
    held = network.boundary_bytes
    return tuple(
        CutSummary(
            cut=cut,
            bytes=held[cut],
            tensors=sum(tensor.source < cut <= max(tensor.targets) for tensor in network.tensors),
        )
        for cut in network.legal_cuts
    )
