"""Pieces of networks whose maps can be computed in tiles, and groups of devices that serve chunks of them."""

from ..families import Family, Usual
from ..protocol import EXACT

FAMILY = Family(
    support=EXACT,
    native="solving:solve_groups",
    backends={"pico": "pico:PicoBackend", "pico-literal": "pico:LiteralPicoBackend"},
    samples="samples:samples",
    usual=Usual(names=("native", "cpsat", "pulp", "pico", "pico-literal"), time_limit_s=10.0),
    package=__name__,
)
