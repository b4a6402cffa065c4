"""What is said of serving: where, by whom units are shared out, and what may go wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..executor.coordination.restarts import RESTARTS
from ..formulations.coordination.sessions import SessionChoice
from ..formulations.coordination.simulation import Late
from ..formulations.coordination.times import SMOOTHING
from .fields import Said, attribute, attributes, said
from .subjects import DEVICE
from .values import (
    DEADLINES,
    KELVINS,
    LINES,
    LIST,
    POWERS,
    SHARE,
    SOME_SIZE,
    YES,
    choice_form,
    count_form,
    file_form,
    number_form,
    scaled_form,
    span_form,
    text_form,
)

SERVED = "How requests are served"
_place = attributes("Where")
_served = attributes(SERVED)
_units = attributes(DEVICE)

LATE = said(
    "What becomes of requests that cannot meet their deadline any more.", choice_form(Late), heading=SERVED
)
SESSIONS = said(
    "Which chunks are loaded: those that its shortest ways have (useful: on a device, and with "
    "--session-memory), or all.",
    choice_form(SessionChoice),
    heading=SERVED,
)
SESSION_MEMORY = said(
    "What the loaded chunks of a network may need together; the least useful ones are left out.",
    SOME_SIZE,
    heading=SERVED,
    rare=True,
)
SMOOTHED = said(
    "Share of the last observation in an expected time.",
    number_form("NUMBER", 0, 1),
    heading=SERVED,
    rare=True,
)
REST = said(
    "Take units away this many kelvins below the temperature at which they would be lost, until they are "
    "cooler.",
    scaled_form("KELVINS", KELVINS, "K", "a difference of temperatures", "5K", least="0K", most="1000K"),
    heading=SERVED,
    called="--rest",
    rare=True,
)
POWER = said(
    "Start nothing that would take the device above this power, by the powers of its units.",
    scaled_form("POWER", POWERS, "W", "a power", "3W", least="1mW", most="1000000W"),
    heading=SERVED,
    rare=True,
)
WORKERS = said(
    "How many requests run on a unit at the same time, each with sessions of its own, e.g. npu=2; can be "
    "repeated.",
    LINES.with_metavar("UNIT=N"),
    heading=DEVICE,
)
CANNOT = said(
    "Operators that a unit cannot run, to emulate accelerators, e.g. core1=Softplus,Resize.",
    LINES.with_metavar("UNIT=RULE,..."),
    heading=DEVICE,
)


@dataclass(frozen=True, kw_only=True)
class Hosting(Said):
    """Where a server listens, and who may ask it."""

    host: str = _place("Address; others than loopback need --token-file.", default="127.0.0.1")
    port: int = _place("Port; 0: any that is free.", count_form(0, 65_535), default=8000)
    socket: Path | None = _place("A Unix socket instead.", file_form("PATH"))
    grpc_port: int | None = _place(
        "Speak gRPC there as well; 0: any port that is free.", count_form(0, 65_535)
    )
    token_file: Path | None = _place("What clients must show, as Authorization: Bearer TOKEN.", file_form())
    admin_token_file: Path | None = _place(
        "What clients that withdraw and restore units must show; without it the token, and nobody may "
        "where others can reach the server.",
        file_form(),
        rare=True,
    )
    metrics_token_file: Path | None = _place(
        "What clients that read metrics must show; without it the token.", file_form(), rare=True
    )
    allow_host: tuple[str, ...] = _place(
        "Without a token, a further name that clients may call the server by, besides localhost, "
        "127.x.x.x and [::1]; can be repeated.",
        LINES.with_metavar("NAME"),
        default=(),
        rare=True,
    )
    max_body_bytes: int = _place(
        "Largest message; larger ones get 413.", SOME_SIZE, default=64 << 20, rare=True
    )


@dataclass(frozen=True, kw_only=True)
class Service(Said):
    """How requests are served, and what takes units away."""

    policy: str = _served(
        "The policy (`gapless list policies`), or my_file.py:NAME of one of your own, which is run.",
        default="lst",
    )
    deadline_us: Mapping[str, int] | None = _served(
        "By when requests of a model have to be done; can be repeated.", DEADLINES
    )
    late: Late = attribute(LATE, default=Late.KEEP)
    queue: int = _served(
        "Most requests that wait for answers; further ones get 429.", count_form(1, 100_000), default=64
    )
    problem: str | None = _served(
        "Units and costs, as `gapless profile` wrote them; else measured.", text_form("PROBLEM")
    )
    split: int = _served(
        "How many sections of a network may run on different units.",
        count_form(1, 50),
        default=1,
        rare=True,
    )
    sessions: SessionChoice | None = attribute(SESSIONS)
    session_memory_bytes: int | None = attribute(SESSION_MEMORY)
    smoothing: float = attribute(SMOOTHED, default=SMOOTHING)
    rest_kelvin: float | None = attribute(REST)
    power: float | None = attribute(POWER)
    behaviour: Path | None = _served(
        "A file on how its units behave (powers, heat, ...).", file_form("PATH"), rare=True
    )
    max_batch: int | None = _served(
        "How many waiting requests of a model run together at most, where that is measured to pay; its file "
        "leaves the first dimension of inputs open (--shape INPUT=1,...).",
        count_form(2, 1024),
    )
    max_delay_s: float | None = _served(
        "How long a request waits for others to run with; usually not at all.",
        span_form("2ms", least="0us", most="10s"),
        rare=True,
    )
    state: tuple[str, ...] = _served(
        "A recurrent model: an input takes the last value of an output, for each sequence of requests, "
        "e.g. h=h_out; MODEL/INPUT=OUTPUT of several models; can be repeated.",
        LINES.with_metavar("INPUT=OUTPUT"),
        default=(),
    )
    seconds: float | None = _served(
        "Stop after this time; otherwise at Ctrl-C or SIGTERM.",
        span_form("60s", least="10ms", most="300000h"),
    )
    restarts: int = _served(
        "How many workers of a unit that was lost may start again within a minute; 0: none.",
        count_form(0, 100_000),
        default=RESTARTS,
        rare=True,
    )
    give_up_s: float = _served(
        "End with exit code 7 when no unit was left to serve with for this time; 0: at once.",
        span_form("120s", least="0us", never=True),
        default=120.0,
        rare=True,
    )
    cannot: tuple[str, ...] = attribute(CANNOT, default=())
    workers: tuple[str, ...] = attribute(WORKERS, default=())
    hot: tuple[str, ...] = _units(
        "Take a unit away while a thermal zone is hotter, e.g. core1=thermal_zone0:85C.",
        LINES.with_metavar("UNIT=ZONE:DEGREES"),
        default=(),
    )
    control: Path | None = _units(
        "Units that this file names, one a line, are away; read each second.", file_form(), rare=True
    )


@dataclass(frozen=True, kw_only=True)
class Play(Said):
    """How a scenario is served in simulated time, or really."""

    policy: tuple[str, ...] = _served(
        "The policies: names, or my_file.py:NAME of one of your own, which is run.",
        LIST.with_metavar("NAME,..."),
        default=("lst",),
    )
    platform: str | None = _served("A shipped phone, e.g. pixel4: its networks have estimated costs.")
    problem: str | None = _served(
        "Or a problem, file or shipped name, with all networks' costs.", text_form("PROBLEM")
    )
    behaviour: Path | None = _served(
        "With --problem: a file on how its units behave (powers, heat, ...).", file_form("PATH"), rare=True
    )
    split: int | None = _served(
        "How many sections of about equal work a network has that runs everywhere.",
        count_form(2, 50),
    )
    sessions: SessionChoice | None = attribute(SESSIONS)
    session_memory_bytes: int | None = attribute(SESSION_MEMORY)
    late: Late = attribute(LATE, default=Late.KEEP)
    seconds: float | None = _served(
        "How long requests come; otherwise as it says.", span_form("10s", least="1ms")
    )
    pace: float = _served(
        "How many times as fast requests come, e.g. 0.1 for a slow device.",
        number_form("NUMBER", 0.001, 1000),
        default=1.0,
    )
    crowd: Path | None = _served(
        "A file with a count for each frame, e.g. of the faces in a video (the last value of each line): "
        "frames ask for requests in proportion.",
        file_form(),
    )
    seed: int | None = _served(
        "Seed of everything random, instead of that of the scenario.", count_form(0), rare=True
    )
    smoothing: float = attribute(SMOOTHED, default=SMOOTHING)
    noise_estimates_permille: int = _served(
        "Let expected times be wrong by up to this share.", SHARE, default=0
    )
    noise_times_permille: int = _served("Let the times of chunks vary by up to this share.", SHARE, default=0)
    rest_kelvin: float | None = attribute(REST)
    power: float | None = attribute(POWER)
    multipliers: str | None = _served(
        "Serve it once for each deadline: these multiples of the 99th percentile of the time alone.",
        text_form("X,..."),
    )
    here: bool = _served(
        "Really serve it with the built-in networks of these names, and simulate it by the times that "
        "were measured before.",
        YES,
    )
    cannot: tuple[str, ...] = attribute(CANNOT, default=())
    workers: tuple[str, ...] = attribute(WORKERS, default=())
    bound_s: float | None = _served(
        "Also solve the first frames, or the first requests, with everything known beforehand: for at most "
        "this time each.",
        span_form("10s", least="100ms"),
    )
    bound_frames: int = _served("How many frames.", count_form(1, 1000), default=5)
