"""Units at work beside each other, on an integer clock: what every play of several requests shares.

A chunk of work T that starts at S ends at the first whole microsecond t with

    t - S >= T + sum over other chunks b of floor(loss(b) * overlap(b, t) / 1000) - floor(spared(t) / 1000),

overlap(b, t) being the time that both have run beside each other until t: b takes the share loss(b)
of its progress while it runs. Where those that run at an instant would take more than
`MOST_LOSS_PERMILLE` together, what is more is spared: spared(t) is the sum of that until t. Everything is
an integer, so the exact backends can state the same condition as rows and get the same numbers, not close
ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .losses import MOST_LOSS_PERMILLE, Loss, Mark


@dataclass(frozen=True, slots=True)
class Run:
    """One chunk that has run: position of its job, unit, start and end."""

    position: int
    unit: int
    start_us: int
    end_us: int
    work_us: int


@dataclass(slots=True, eq=False)
class _Running:
    position: int
    unit: int
    mark: Mark
    start_us: int
    work_us: int
    due_us: int
    """Start, work and the time lost to chunks that have ended."""
    beside: list[tuple[_Running, int, int]] = field(default_factory=list)
    """Chunks that run at the same time: (chunk, since when, loss in permille)."""
    over: int = 0
    """By how many permille they would take more than it can lose, since `seen_us`."""
    spared: int = 0
    """The sum of that up to then, in thousandths of a microsecond."""
    seen_us: int = 0

    def end_us(self, now_us: int) -> int:
        """Return when it will end if its company stays as it is, which it is from now on.

        The least t with t >= due + sum of floor(loss (t - since) / 1000) - floor(spared / 1000), approached
        from below: without a cap at work the right side never falls, and t may go there at once.
        """
        if self.over:
            self.spared += self.over * (now_us - self.seen_us)
            self.over = 0
        due = self.due_us
        if not self.beside:
            return due - self.spared // 1000
        loss, since = 0, 0
        for _, start, rate in self.beside:
            loss += rate
            since += rate * start
        over = 0
        if loss > MOST_LOSS_PERMILLE:
            over = self.over = loss - MOST_LOSS_PERMILLE
            self.seen_us = now_us
        spared = self.spared - over * now_us
        lower = (1000 * (due - len(self.beside)) - since - spared) // (1000 - loss + over)
        at = max(lower, now_us)
        while True:
            reached = due - (spared + over * at) // 1000
            for _, start, rate in self.beside:
                reached += rate * (at - start) // 1000
            if reached <= at:
                return at
            at = at + 1 if over else reached


class Units:
    """The units at work: who runs where, and since when beside whom."""

    def __init__(self, loss: Loss | None) -> None:
        self._loss = loss
        self._ends: list[tuple[_Running, int]] = []
        self.running: dict[int, _Running] = {}

    def start(self, position: int, mark: Mark, unit: int, work_us: int, now_us: int) -> None:
        """Start a chunk."""
        new = _Running(position, unit, mark, now_us, work_us, now_us + work_us)
        loss = self._loss
        if loss is not None:
            for other in self.running.values():
                mine = loss(unit, mark, other.unit, other.mark)
                theirs = loss(other.unit, other.mark, unit, mark)
                if mine:
                    new.beside.append((other, now_us, mine))
                if theirs:
                    other.beside.append((new, now_us, theirs))
        self.running[unit] = new

    def next_end_us(self, now_us: int) -> int | None:
        """Return when the next chunk ends, or None when nothing runs."""
        self._ends = [(chunk, chunk.end_us(now_us)) for chunk in self.running.values()]
        return min((end for _, end in self._ends), default=None)

    def stop(self, at_us: int) -> list[Run]:
        """Take out and return the chunks that end at a time, which is what `next_end_us` has just said."""
        ended = [chunk for chunk, end in self._ends if end == at_us]
        for chunk in ended:
            del self.running[chunk.unit]
        for chunk in self.running.values():
            for other, since, rate in chunk.beside:
                if other in ended:
                    chunk.due_us += rate * (at_us - since) // 1000
            chunk.beside = [entry for entry in chunk.beside if entry[0] not in ended]
        return [Run(c.position, c.unit, c.start_us, at_us, c.work_us) for c in ended]
