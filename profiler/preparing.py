"""Pieces of a model as engines run them: what each engine can convert, and which cuts are closed for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from ..executor.engine import Engine
from ..executor.model import Model, Piece
from ..formulations.errors import ConversionError, LayerNotRunnableError
from ..formulations.network import Network
from .feed import Feed
from .measuring import PreparedPiece
from .probes import Probe, Span, blocks, piece_spans

MOST_NAMED = 5
"""Most layers that a note names; of more, their number."""


class Preparer:
    """Cuts pieces out of a model and has one engine convert them, each range once."""

    def __init__(self, model: Model, engine: Engine, feed: Feed) -> None:
        self.engine = engine.name
        self._model = model
        self._engine = engine
        self._feed = feed
        self._probes: dict[Span, tuple[Probe, ...]] = {}
        self._refused: dict[Span, ConversionError] = {}

    def prepare(self, spans: Iterable[Span]) -> None:
        """Convert the pieces of some ranges in one go."""
        for error in self.attempt(spans).values():
            raise error

    def attempt(self, spans: Iterable[Span]) -> dict[Span, ConversionError]:
        """Convert the pieces of ranges in one go; return those that the engine cannot convert, and why."""
        wanted = tuple(dict.fromkeys(spans))
        new = {
            span: self._model.pieces(*span)
            for span in wanted
            if span not in self._probes and span not in self._refused
        }
        if new:
            self._feed.announce(piece for pieces in new.values() for piece in pieces)
            self._convert(new)
        return {span: self._refused[span] for span in wanted if span in self._refused}

    def refuse(self, span: Span, error: ConversionError) -> None:
        """Take a range for one that cannot be converted."""
        self._probes.pop(span, None)
        self._refused[span] = error

    def _convert(self, new: Mapping[Span, tuple[Piece, ...]]) -> None:
        flat = [piece for pieces in new.values() for piece in pieces]
        try:
            artifacts = iter(self._engine.prepare(flat))
        except ConversionError as error:
            refused = dict(_refused(new, error))
            self._refused |= refused
            left = {span: pieces for span, pieces in new.items() if span not in refused}
            # What could be converted is in the cache of the engine.
            for some in [left] if refused else [{span: pieces} for span, pieces in left.items()]:
                if some:
                    self._convert(some)
            return
        for span, pieces in new.items():
            prepared = [PreparedPiece(piece=piece, artifact=next(artifacts)) for piece in pieces]
            spans_of = piece_spans(self._model.network, pieces, span)
            self._probes[span] = tuple(
                Probe(span=inner, prepared=one) for inner, one in zip(spans_of, prepared, strict=True)
            )

    def probes(self, span: Span) -> tuple[Probe, ...]:
        """Return the pieces of a range: more than one where it crosses from one model to the next."""
        self.prepare([span])
        return self._probes[span]


def _refused(
    new: Mapping[Span, tuple[Piece, ...]], error: ConversionError
) -> Iterator[tuple[Span, ConversionError]]:
    """Yield the ranges that an error is about; none where it does not say so of several."""
    for span, pieces in new.items():
        problems = {p.name: error.problems[p.name] for p in pieces if p.name in error.problems}
        if problems:
            yield span, ConversionError("; ".join(f"{n}: {why}" for n, why in problems.items()), problems)
        elif len(new) == 1:
            yield span, error


class Preparers:
    """A preparer for each engine, by unit."""

    def __init__(self, model: Model, engines: Mapping[str, Engine], feed: Feed) -> None:
        made = {engine.name: Preparer(model, engine, feed) for engine in engines.values()}
        self._by_unit = {unit: made[engine.name] for unit, engine in engines.items()}
        self.each = tuple(made.values())

    def of(self, unit: str) -> Preparer:
        """Return who prepares what a unit runs."""
        return self._by_unit[unit]

    def converts(self, unit: str, span: Span) -> bool:
        """Return whether the engine of a unit can convert some layers."""
        return not self.of(unit).attempt([span])

    def require(self, network: Network) -> tuple[Network, list[str]]:
        """Find out, before anything is measured, which engine can convert which layers.

        What an engine cannot convert is another engine's layer. Cuts are closed around layers that an engine
        converts within the whole, but not alone, so that it need not give up the whole.

        Returns the network with the cuts that are left, and notes.
        """
        whole = (0, len(network.layers))
        notes: list[str] = []
        lost = set(blocks(network))
        for preparer in self.each:
            uncut = preparer.attempt([whole])
            refused = preparer.attempt(blocks(network)) if uncut else {}
            lost &= set(refused)
            notes += _notes(network, preparer, refused or uncut)
        if lost:
            names = ", ".join(repr(name) for span in sorted(lost) for name in _names(network, span))
            raise LayerNotRunnableError(
                f"no unit can run layer {names} of {network.name!r}; add an engine that can (--engine "
                f"{','.join(preparer.engine for preparer in self.each)},...):"
                + "".join(f"\n  - {note}" for note in notes)
            )
        for preparer in self.each:
            if not preparer.attempt([whole]):
                network, more = _closed(network, preparer)
                notes += more
        return network, notes


def _closed(network: Network, preparer: Preparer) -> tuple[Network, list[str]]:
    """Close cuts until an engine that converts the whole converts what lies between them."""
    notes: list[str] = []
    while refused := preparer.attempt(blocks(network)):
        notes += _notes(network, preparer, refused, " alone, so no chunk begins or ends there")
        shut = {cut for span in refused for cut in span} & set(network.legal_cuts)
        network = replace(network, forbidden_cuts=(*network.forbidden_cuts, *sorted(shut)))
    return network, notes


def _names(network: Network, span: Span) -> tuple[str, ...]:
    return network.layer_names[slice(*span)]


def _notes(
    network: Network, preparer: Preparer, refused: Mapping[Span, ConversionError], how: str = ""
) -> Iterator[str]:
    """Yield what to say of layers that an engine cannot run: once for each reason."""
    reasons: dict[str, list[str]] = {}
    for span, error in refused.items():
        for reason in dict.fromkeys(error.problems.values() or [str(error)]):
            reasons.setdefault(reason, []).extend(_names(network, span))
    for reason, names in reasons.items():
        listed = ", ".join(map(repr, names)) if len(names) <= MOST_NAMED else f"{len(names)} layers"
        yield f"{preparer.engine} cannot run {listed}{how}: {reason}"


def prepare_whole(preparer: Preparer, network: Network) -> tuple[Probe, ...]:
    """Return the uncut models of a network."""
    try:
        return preparer.probes((0, len(network.layers)))
    except ConversionError as error:
        for span, cause in preparer.attempt(blocks(network)).items():
            names = ", ".join(map(repr, _names(network, span)))
            raise LayerNotRunnableError(
                f"no unit can run layer {names} of {network.name!r}: {cause}"
            ) from error
        raise
