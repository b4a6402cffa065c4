"""What is said of serving: where, by whom units are shared out, and what may go wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

from ..executor.coordination.restarts import RESTARTS
from ..formulations.coordination.dispatch import Late
from ..formulations.coordination.sessions import SessionChoice
from ..formulations.coordination.times import SMOOTHING
from .fields import Said, said
from .subjects import DEVICE
from .values import (
    DEADLINES,
    LINES,
    LIST,
    SHARE,
    SOME_SIZE,
    YES,
    choice_form,
    count_form,
    file_form,
    number_form,
    span_form,
    text_form,
)

SERVED = "How requests are served"
_place = partial(said, heading="Where")
_served = partial(said, heading=SERVED)
_units = partial(said, heading=DEVICE)

LATE = _served("What becomes of requests that cannot meet their deadline any more.", choice_form(Late))
SESSIONS = _served(
    "Which chunks are loaded: those that its shortest ways have (useful: on a device, and with "
    "--session-memory), or all.",
    choice_form(SessionChoice),
)
SESSION_MEMORY = _served(
    "What the loaded chunks of a network may need together; the least useful ones are left out.", SOME_SIZE
)
CANNOT = _units(
    "Operators that a unit cannot run, to emulate accelerators, e.g. core1=Softplus,Resize.",
    LINES.with_metavar("UNIT=RULE,..."),
)


@dataclass(frozen=True, kw_only=True)
class Hosting(Said):
    """Where a server listens, and who may ask it."""

    host: Annotated[str, _place("Address; others than loopback need --token-file.")] = "127.0.0.1"
    port: Annotated[int, _place("Port; 0: any that is free.", count_form(0, 65_535))] = 8000
    socket: Annotated[Path | None, _place("A Unix socket instead.", file_form("PATH"))] = None
    grpc_port: Annotated[
        int | None, _place("Speak gRPC there as well; 0: any port that is free.", count_form(0, 65_535))
    ] = None
    token_file: Annotated[
        Path | None, _place("What clients must show, as Authorization: Bearer TOKEN.", file_form())
    ] = None
    admin_token_file: Annotated[
        Path | None,
        _place(
            "What clients that withdraw and restore units must show; without it the token, and nobody may "
            "where others can reach the server.",
            file_form(),
        ),
    ] = None
    metrics_token_file: Annotated[
        Path | None, _place("What clients that read metrics must show; without it the token.", file_form())
    ] = None
    allow_host: Annotated[
        tuple[str, ...],
        _place(
            "Without a token, a further name that clients may call the server by, besides localhost, "
            "127.x.x.x and [::1]; can be repeated.",
            LINES.with_metavar("NAME"),
        ),
    ] = ()
    max_body_bytes: Annotated[int, _place("Largest message; larger ones get 413.", SOME_SIZE)] = 64 << 20


@dataclass(frozen=True, kw_only=True)
class Service(Said):
    """How requests are served, and what takes units away."""

    policy: Annotated[
        str,
        _served(
            "Who decides (`gapless list policies`), or my_file.py:NAME of one of your own, which is run."
        ),
    ] = "lst"
    deadline_us: Annotated[
        Mapping[str, int] | None,
        _served("By when requests of a model have to be done; can be repeated.", DEADLINES),
    ] = None
    late: Annotated[Late, LATE] = Late.KEEP
    queue: Annotated[
        int,
        _served("Most requests that wait for answers; further ones get 429.", count_form(1, 100_000)),
    ] = 64
    problem: Annotated[
        str | None,
        _served("Units and costs, as `gapless profile` wrote them; else measured.", text_form("PROBLEM")),
    ] = None
    split: Annotated[
        int,
        _served("Divide networks into so many sections, which may run on other units.", count_form(1, 50)),
    ] = 1
    sessions: Annotated[SessionChoice | None, SESSIONS] = None
    session_memory_bytes: Annotated[int | None, SESSION_MEMORY] = None
    max_batch: Annotated[
        int | None,
        _served(
            "Run up to so many waiting requests of a model together, where that is measured to pay; its file "
            "leaves the first dimension of inputs open (--shape INPUT=1,...).",
            count_form(2, 1024),
        ),
    ] = None
    max_delay_s: Annotated[
        float | None,
        _served(
            "How long a request waits for others to run with; usually not at all.",
            span_form("2ms", least="0us", most="10s"),
        ),
    ] = None
    state: Annotated[
        tuple[str, ...],
        _served(
            "A recurrent model: an input takes the last value of an output, for each sequence of requests, "
            "e.g. h=h_out; MODEL/INPUT=OUTPUT of several models; can be repeated.",
            LINES.with_metavar("INPUT=OUTPUT"),
        ),
    ] = ()
    seconds: Annotated[
        float | None,
        _served(
            "Stop after so long; otherwise at Ctrl-C or SIGTERM.",
            span_form("60s", least="10ms", most="300000h"),
        ),
    ] = None
    restarts: Annotated[
        int,
        _served(
            "How many workers of a unit that was lost may start again within a minute; 0: none.",
            count_form(0, 100_000),
        ),
    ] = RESTARTS
    give_up_s: Annotated[
        float,
        _served(
            "End with exit code 7 when no unit was left to serve with for so long; 0: at once.",
            span_form("120s", least="0us", never=True),
        ),
    ] = 120.0
    cannot: Annotated[tuple[str, ...], CANNOT] = ()
    hot: Annotated[
        tuple[str, ...],
        _units(
            "Take a unit away while a thermal zone is hotter, e.g. core1=thermal_zone0:85.",
            LINES.with_metavar("UNIT=ZONE:CELSIUS"),
        ),
    ] = ()
    control: Annotated[
        Path | None,
        _units("Units that this file names, one a line, are away; read each second.", file_form()),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Play(Said):
    """How a scenario is served in simulated time, or really."""

    policy: Annotated[
        tuple[str, ...],
        _served(
            "Who decides: names, or my_file.py:NAME of one of your own, which is run.",
            LIST.with_metavar("NAME,..."),
        ),
    ] = ("lst",)
    platform: Annotated[
        str | None, _served("A shipped phone, e.g. pixel4: its networks have estimated costs.")
    ] = None
    problem: Annotated[
        str | None,
        _served("Or a problem, file or shipped name, with all networks' costs.", text_form("PROBLEM")),
    ] = None
    behaviour: Annotated[
        Path | None,
        _served("With --problem: a file on how its units behave (powers, heat, ...).", file_form("PATH")),
    ] = None
    split: Annotated[
        int | None,
        _served(
            "Divide networks that run everywhere into so many sections of about equal work.",
            count_form(2, 50),
        ),
    ] = None
    sessions: Annotated[SessionChoice | None, SESSIONS] = None
    session_memory_bytes: Annotated[int | None, SESSION_MEMORY] = None
    late: Annotated[Late, LATE] = Late.KEEP
    seconds: Annotated[
        float | None,
        _served("How long requests come; otherwise as it says.", span_form("10s", least="1ms")),
    ] = None
    pace: Annotated[
        float,
        _served(
            "Let requests come so many times as fast, e.g. 0.1 for a slow device.",
            number_form("NUMBER", 0.001, 1000),
        ),
    ] = 1.0
    seed: Annotated[int | None, _served("Of all that is drawn, instead of its own.", count_form(0))] = None
    smoothing: Annotated[
        float,
        _served("Share of the last observation in an expected time.", number_form("NUMBER", 0, 1)),
    ] = SMOOTHING
    noise_estimates_permille: Annotated[
        int, _served("Let expected times be wrong by up to so much.", SHARE)
    ] = 0
    noise_times_permille: Annotated[int, _served("Let the times of chunks vary by up to so much.", SHARE)] = 0
    rest: Annotated[
        float | None,
        _served(
            "Let units rest so far below the heat at which they are lost.", number_form("KELVIN", 0, 1000)
        ),
    ] = None
    power: Annotated[
        float | None,
        _served("Start nothing beyond a power of the device.", number_form("WATT", 0.001, 1e6)),
    ] = None
    multipliers: Annotated[
        str | None,
        _served(
            "Serve it once for each deadline: so many times the 99th percentile of the time alone.",
            text_form("X,..."),
        ),
    ] = None
    here: Annotated[
        bool,
        _served(
            "Really serve it with the built-in networks of these names, and simulate it by the times that "
            "were measured before.",
            YES,
            flag=True,
        ),
    ] = False
    cannot: Annotated[tuple[str, ...], CANNOT] = ()
    bound_s: Annotated[
        float | None,
        _served(
            "Also solve the first frames, or the first requests, with everything known beforehand: so long "
            "each.",
            span_form("10s", least="100ms"),
        ),
    ] = None
    bound_frames: Annotated[int, _served("How many frames.", count_form(1, 1000))] = 5
