"""Damage to the bytes of a file, whatever it holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

Damage = Callable[[Random, bytes, Sequence[bytes]], bytes]
"""Takes a file and other files of its kind; returns a damaged file."""


def flip_bits(random: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """Change some single bits."""
    found = bytearray(data)
    for _bit in range(random.choice((1, 1, 2, 4, 16))):
        found[random.randrange(len(found))] ^= 1 << random.randrange(8)
    return bytes(found)


def truncate(random: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """Cut off the end."""
    return data[: random.randrange(1, len(data) + 1)]


def overwrite(random: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """Write random bytes over some."""
    start, count = random.randrange(len(data)), random.choice((1, 2, 4, 8, 64))
    return data[:start] + random.randbytes(count) + data[start + count :]


def remove(random: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """Leave out some bytes in the middle."""
    start = random.randrange(len(data))
    return data[:start] + data[start + random.randrange(1, 65) :] or b"\0"


def repeat(random: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """Write some bytes many times."""
    start = random.randrange(len(data))
    stop = min(len(data), start + random.randrange(1, 129))
    return data[:stop] + data[start:stop] * random.randrange(1, 200) + data[stop:]


def splice(random: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Put the end of another file after the beginning of this one."""
    other = random.choice(others)
    return data[: random.randrange(1, len(data) + 1)] + other[random.randrange(len(other)) :]


BYTE_DAMAGE: tuple[Damage, ...] = (flip_bits, flip_bits, truncate, overwrite, remove, repeat, splice)
"""All of them; what hurts without being noticed at once comes more often."""

STRANGE_TEXTS = (
    "",
    " ",
    "\0",
    "a\0b",
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "\r\n",
    "\u202egnp.exe",
    "\u2066\u2069\u200b\ufeff",
    "\u2028\u2029",
    "\ud800",
    "\U000e0041",
    "e" + "\u0301" * 500,
    "<script>alert(1)</script>",
    "]]><![CDATA[",
    "{{ 7 * 7 }}",
    "[bold red]markup[/]",
    "$x^{$ \\frac",
    "%s%n%d",
    "../../../../etc/passwd",
    "/dev/zero",
    "-1",
    "NaN",
    "x" * 100_000,
)
"""Names and texts that some program once took for something else."""

STRANGE_NUMBERS = (
    0,
    1,
    -1,
    2,
    7,
    255,
    2**15,
    2**31 - 1,
    -(2**31),
    2**32,
    2**44,
    2**44 + 1,
    2**53 + 1,
    2**63 - 1,
    -(2**63),
)
"""Whole numbers at the edges of what machines and formats hold; all fit into 64 bits."""
