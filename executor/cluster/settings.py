"""What devices are told of the chunks that they serve; it travels as JSON, the content of pieces apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..model import Piece, TensorPart, TensorSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceSettings:
    """A piece of a chunk; travels as JSON, its content apart.

    `name`, `digest`, `prefix`, `inputs`, `outputs`: as in `Piece`.
    """

    name: str
    digest: str
    prefix: str
    kind: str  # of its content
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]

    @classmethod
    def of(cls, piece: Piece) -> PieceSettings:
        """Return a piece without its content."""
        return cls(
            name=piece.name,
            digest=piece.digest,
            prefix=piece.prefix,
            kind=piece.content.kind,
            inputs=piece.inputs,
            outputs=piece.outputs,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What one device of a group does of a chunk.

    `takes`, `makes`: the parts of tensors that its tile reads, and those that it computes.
    """

    device: str  # its name
    takes: tuple[TensorPart, ...]
    makes: tuple[TensorPart, ...]

    @classmethod
    def of(cls, device: str, tile: Piece) -> Share:
        """Return the share of a device that computes a tile."""
        count = len(tile.inputs)
        return cls(device=device, takes=tile.parts[:count], makes=tile.parts[count:])


@dataclass(frozen=True, slots=True, kw_only=True)
class StationSettings:
    """What a device needs to know about a chunk that it serves; travels as JSON."""

    route: int  # number of the stream, unique in the cluster as long as it stands
    task: int
    """Logical clock: on each device, chunks of a later task wait until those of earlier ones have ended."""
    where: str  # the chunk in words
    engine: str  # who runs it; empty for a station that only hands on
    units: tuple[Mapping[str, Any], ...]
    """The units of the device that its parts run on, one part each, in order (`unit_data`)."""
    parts: tuple[tuple[PieceSettings, ...], ...]  # the pieces of each part
    takes: tuple[TensorSpec, ...]  # the tensors that the chunk itself needs; of a tile, its parts of them
    sends: tuple[str, ...]  # names of the tensors that go on: those that it makes, and those that pass by
    target: str  # the device that gets them, or the driver; of a tile, the leader of its group
    is_last: bool  # whether what it sends are results
    shares: tuple[Share, ...] = ()
    """Of the leader of a group: what each device of the group does, in order; empty: it does all alone."""

    @property
    def targets(self) -> tuple[str, ...]:
        """Whom it sends to: its target, and the devices of the group that it leads, itself among them."""
        return (self.target, *(share.device for share in self.shares))

    def data(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return asdict(self)

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> StationSettings:
        """Return what `data` wrote."""
        parts = tuple(tuple(parse_piece(piece) for piece in part) for part in data["parts"])
        lists = {"units": tuple(data["units"]), "sends": tuple(data["sends"]), "takes": _specs(data["takes"])}
        shares = tuple(
            Share(device=one["device"], takes=_parts(one["takes"]), makes=_parts(one["makes"]))
            for one in data["shares"]
        )
        return cls(**{**data, **lists, "parts": parts, "shares": shares})


def parse_piece(data: Mapping[str, Any]) -> PieceSettings:
    """Return the piece that `dataclasses.asdict` wrote."""
    return PieceSettings(**{**data, "inputs": _specs(data["inputs"]), "outputs": _specs(data["outputs"])})


def _specs(data: Sequence[Mapping[str, Any]]) -> tuple[TensorSpec, ...]:
    return tuple(TensorSpec(**{**spec, "shape": tuple(spec["shape"])}) for spec in data)


def _parts(data: Sequence[Mapping[str, Any]]) -> tuple[TensorPart, ...]:
    return tuple(TensorPart(**{**part, "whole": _specs([part["whole"]])[0]}) for part in data)
