"""Serving models to other programs."""

from __future__ import annotations

import sys
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ...executor.coordination.restarts import RESTARTS
from ...executor.graph.choices import Simplification
from ...files import documents
from ...formulations.coordination.dispatch import Late
from ...formulations.hardware import Precision
from ..base.answer import Answer, command
from ..base.general_options import JsonOption, heading, output_option
from ..options.models import (
    CheckOption,
    DeviceOption,
    EmulateOption,
    EngineOption,
    GranularityOption,
    MaterializeOption,
    PrecisionOption,
    SessionMemoryOption,
    SessionsOption,
    ShapeOption,
    SimplifyOption,
    UnitsOption,
)
from ..options.problem import check_writable


class LogLevel(StrEnum):
    """Which messages of a log are written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


_place_option = heading("Where")
_served_option = heading("How requests are served")
_units_option = heading("The device")

SubjectsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="MODEL...|PLAN",
        help="Models: ONNX files, built-in networks (see `gapless list networks`), or path.py:NAME of a "
        "CallableModel; NAME=... before one gives it a name of your own. Or a plan, or the folder of a run: "
        "every request then takes its chunks.",
        show_default=False,
    ),
]
PolicyOption = Annotated[
    str,
    _served_option(
        help="Who decides (`gapless requests coordinate` lists the policies), or my_file.py:NAME of one of "
        "your own, which is run."
    ),
]
DeadlineOption = Annotated[
    list[str] | None,
    _served_option(
        metavar="NAME=MS", help="By when requests of a model have to be done, milliseconds; can be repeated."
    ),
]
LateOption = Annotated[
    Late, _served_option(help="What becomes of requests that cannot meet their deadline any more.")
]
QueueOption = Annotated[
    int, _served_option(min=1, max=100_000, help="Most requests that wait for answers; further ones get 429.")
]
ProblemOption = Annotated[
    str | None,
    _served_option(
        "--problem",
        metavar="PROBLEM",
        help="Units and costs, as `gapless profile` wrote them; else measured.",
    ),
]
StateOption = Annotated[
    list[str] | None,
    _served_option(
        metavar="INPUT=OUTPUT",
        help="A recurrent model: an input takes the last value of an output, for each sequence of requests, "
        "e.g. h=h_out; MODEL/INPUT=OUTPUT of several models; can be repeated.",
    ),
]
SplitOption = Annotated[
    int,
    _served_option(
        min=1, max=50, help="Divide networks into so many sections, which may run on other units."
    ),
]
CannotOption = Annotated[
    list[str] | None,
    _units_option(
        metavar="UNIT=RULE,...",
        help="Operators that a unit cannot run, to emulate accelerators, e.g. core1=Softplus,Resize.",
    ),
]
HotOption = Annotated[
    list[str] | None,
    _units_option(
        metavar="UNIT=ZONE:CELSIUS",
        help="Take a unit away while a thermal zone is hotter, e.g. core1=thermal_zone0:85.",
    ),
]
ControlOption = Annotated[
    Path | None,
    _units_option(metavar="FILE", help="Units that this file names, one a line, are away; read each second."),
]
HostOption = Annotated[str, _place_option(help="Address; others than loopback need --token-file.")]
PortOption = Annotated[int, _place_option(min=0, max=65_535, help="Port; 0: any that is free.")]
SocketOption = Annotated[Path | None, _place_option(metavar="PATH", help="A Unix socket instead.")]
GrpcPortOption = Annotated[
    int | None,
    _place_option(min=0, max=65_535, help="Speak gRPC there as well; 0: any port that is free."),
]
TokenOption = Annotated[
    Path | None,
    _place_option(metavar="FILE", help="What clients must show, as Authorization: Bearer TOKEN."),
]
AdminTokenOption = Annotated[
    Path | None,
    _place_option(
        metavar="FILE",
        help="What clients that withdraw and restore units must show; without it the token, and nobody may "
        "where others can reach the server.",
    ),
]
MetricsTokenOption = Annotated[
    Path | None,
    _place_option(metavar="FILE", help="What clients that read metrics must show; without it the token."),
]
AllowHostOption = Annotated[
    list[str] | None,
    _place_option(
        metavar="NAME",
        help="Without a token, a further name that clients may call the server by, besides localhost, "
        "127.x.x.x and [::1]; can be repeated.",
    ),
]
MaxBodyOption = Annotated[
    int, _place_option(min=1, max=4096, help="Largest message, MiB; larger ones get 413.")
]
SecondsOption = Annotated[
    float | None,
    _served_option(min=0.01, max=1e9, help="Stop after so long; otherwise at Ctrl-C or SIGTERM."),
]
TraceOption = Annotated[
    Path | None, output_option(help="In the end, write a Perfetto trace of the last requests.")
]
LogLevelOption = Annotated[
    LogLevel,
    output_option(
        help="The least important messages of the log on standard error: requests are debug, lost workers "
        "warnings."
    ),
]
LogJsonOption = Annotated[
    bool, output_option("--log-json", help="The log, and what else is said meanwhile, in JSON lines.")
]
RestartsOption = Annotated[
    int,
    _served_option(
        min=0,
        max=100_000,
        help="How many workers of a unit that was lost may start again within a minute; 0: none.",
    ),
]
GiveUpOption = Annotated[
    str,
    _served_option(
        metavar="SECONDS|never",
        help="End with exit code 7 when no unit was left to serve with for so long; 0: at once.",
    ),
]


@command
def serve(
    subjects: SubjectsArgument,
    *,
    host: HostOption = "127.0.0.1",
    port: PortOption = 8000,
    socket: SocketOption = None,
    grpc_port: GrpcPortOption = None,
    token_file: TokenOption = None,
    admin_token_file: AdminTokenOption = None,
    metrics_token_file: MetricsTokenOption = None,
    allow_host: AllowHostOption = None,
    max_body: MaxBodyOption = 64,
    policy: PolicyOption = "lst",
    deadline: DeadlineOption = None,
    late: LateOption = Late.KEEP,
    queue: QueueOption = 64,
    problem: ProblemOption = None,
    split: SplitOption = 1,
    sessions: SessionsOption = None,
    session_memory: SessionMemoryOption = None,
    state: StateOption = None,
    seconds: SecondsOption = None,
    check: CheckOption = True,
    shape: ShapeOption = None,
    granularity: GranularityOption = "auto",  # type: ignore[assignment] # typer reads the text
    materialize: MaterializeOption = False,
    simplify: SimplifyOption = Simplification.AUTO,
    engine: EngineOption = None,
    device: DeviceOption = None,
    units: UnitsOption = None,
    emulate: EmulateOption = None,
    precision: PrecisionOption = Precision.HIGH,
    cannot: CannotOption = None,
    hot: HotOption = None,
    control: ControlOption = None,
    restarts: RestartsOption = RESTARTS,
    give_up: GiveUpOption = "120",
    trace: TraceOption = None,
    log_level: LogLevelOption = LogLevel.INFO,
    log_json: LogJsonOption = False,
    json: JsonOption = False,
) -> Answer:
    """Serve models to other programs by the Open Inference Protocol; a policy shares out the units."""
    from ...serving.logs import kept
    from ...solvers.coordination.policies import make_policy
    from ...view.terminal.serving import served_view
    from ..tasks import measuring, serving

    check_writable(trace)
    give_up_s = serving.parse_give_up(give_up)
    tokens = {"token": token_file, "admin_token": admin_token_file, "metrics_token": metrics_token_file}
    where = serving.place(
        host, port, socket, grpc_port, tokens=tokens, allow_hosts=allow_host or (), most_mib=max_body
    )
    where["states"] = serving.parse_states(state)
    sources = serving.sources_of(control, hot)
    how = {"policy": make_policy(policy), "late": late, "split": split, "queue": queue, "check": check}
    how["restarts"] = restarts
    how |= serving.sessions_of(sessions, session_memory)
    how |= {"deadlines_us": serving.parse_deadlines(deadline), "cannot": serving.parse_cannot(cannot)}
    opening = measuring.opening(shape, granularity, materialize=materialize, simplify=simplify)
    choice = measuring.DeviceChoice.of(engine, units=units, emulate=emulate, precision=precision, file=device)
    with kept(sys.stderr, level=log_level, as_json=log_json) as log:
        find = partial(serving.subject, subjects, opening, problem)
        server, asked = serving.opened(find, choice, where, how)
        found, notes = serving.serve_until(
            server, seconds=seconds, sources=sources, trace=trace, give_up_s=give_up_s, log=log
        )
    return Answer(
        document=lambda: {**documents.header("served"), **documents.plain_data(found)},
        view=lambda: served_view(found),
        notes=[*asked.notes, *notes],
    )
