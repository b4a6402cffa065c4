"""How a group splits the rows of its chunk: the closed procedure of cooperation, section 2.

In a group of two every tile has one neighbour, in a larger one a tile may have two: what r rows take is
told by r and the size of the group alone. Then, where all links are alike, no split and no leader is better:
for a deadline t on computing, the device that can do most rows in t leads and takes as many as it can, which
leaves least to send; the others are filled one after the other, those first that can take most, because what
r rows read grows ever more slowly with r. The deadlines that matter are the times of whole numbers of rows.
Where links are unlike every leader is tried, and the procedure is a rule, not an optimum.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Rows = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """How a group shares the rows of a chunk."""

    leader: int  # place in the group of the device that sends inputs and gathers results
    rows: Rows  # rows of each device of the group, in its order
    deadline_us: int  # within this time all have computed
    message_us: int  # how long all messages between the leader and the others take


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """What a group has to know to split a chunk."""

    total: int  # rows to be dealt out, at least one for each device
    compute_us: Sequence[Sequence[int]]  # by device how long r rows take, by r = 0..total; not decreasing
    message_us: Callable[[int, Rows], int | None]
    """From a leader and the rows of all devices to how long their messages take; None: it has no links to all
    of them."""
    overlap: bool  # whether messages are sent while others are computed
    alike: bool = False  # whether messages between any two devices take the same time

    def time_us(self, compute_us: int, message_us: int) -> int:
        """Return what a request takes of the group."""
        return max(compute_us, message_us) if self.overlap else compute_us + message_us


def best_split(group: Group) -> Split | None:
    """Return the best split of a chunk among all devices of a group; None: no leader reaches all others.

    Of equally good ones it is that of the first leader, with the least deadline.
    """
    leaders: Sequence[int | None] = (None,) if group.alike else range(len(group.compute_us))
    found = [split for leader in leaders if (split := _led(group, leader)) is not None]
    return min(found, key=lambda split: group.time_us(split.deadline_us, split.message_us), default=None)


def _led(group: Group, leader: int | None) -> Split | None:
    """Return the best split with a leader; None: with the one that can do most rows in the time."""
    most = group.total - len(group.compute_us) + 1
    deadlines = sorted({time for times in group.compute_us for time in times[1 : most + 1]})
    # No messages take less than those that are left when there is all the time in the world.
    least = _dealt(group, leader, deadlines[-1], most)
    best, best_us = least, -1
    for deadline in deadlines[_least(group, deadlines, most) :]:
        if least is None or 0 <= best_us <= group.time_us(deadline, least.message_us):
            break
        split = _dealt(group, leader, deadline, most)
        assert split is not None
        split_us = group.time_us(deadline, split.message_us)
        if best_us < 0 or split_us < best_us:
            best, best_us = split, split_us
    return best


def _possible(group: Group, deadline: int, most: int) -> list[int]:
    """Return the most rows of each device within a deadline."""
    return [min(most, bisect_right(times, deadline) - 1) for times in group.compute_us]


def _least(group: Group, deadlines: Sequence[int], most: int) -> int:
    """Return the place of the least deadline that all devices together can keep."""
    low, high = 0, len(deadlines) - 1
    while low < high:
        middle = (low + high) // 2
        able = _possible(group, deadlines[middle], most)
        if min(able) >= 1 and sum(able) >= group.total:
            high = middle
        else:
            low = middle + 1
    return low


def _dealt(group: Group, leader: int | None, deadline: int, most: int) -> Split | None:
    """Deal the rows out: the leader has most, then those that can do most, and one each."""
    able = _possible(group, deadline, most)
    order = sorted(range(len(able)), key=lambda d: (d != leader, -able[d], d))
    rows, left = [1] * len(able), group.total - len(able)
    for device in order:
        more = min(left, able[device] - 1)
        rows[device] += more
        left -= more
    message_us = group.message_us(order[0], tuple(rows))
    if message_us is None:
        return None
    return Split(leader=order[0], rows=tuple(rows), deadline_us=deadline, message_us=message_us)
