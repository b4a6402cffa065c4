"""What is said besides a question: how models are opened, what runs them, and how plans are found and tried.

A command, a function of Python and a board take the same fields of these subjects.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..executor.graph.choices import Granularity, Simplification
from ..executor.tuning.racing import TuningMode
from ..formulations.errors import InvalidInputError
from ..formulations.hardware import MAX_WORKERS, Precision
from .fields import Said, attribute, attributes, said
from .question import ASKED
from .values import (
    CODE,
    LINES,
    LIST,
    PERCENT,
    SHAPES,
    SHARES,
    SIZES_OF_BATCHES,
    SOME_SIZE,
    YES,
    Names,
    choice_form,
    count_form,
    file_form,
    span_form,
    text_form,
)

if TYPE_CHECKING:
    from ..executor.samples import Samples
    from ..solvers.protocol import SolveOptions

MODEL = "The model"
_model = attributes(MODEL)
DEVICE = "The device"
_device = attributes(DEVICE)
SOLVING = "How to solve"
_search = attributes(SOLVING)
_race = attributes("How to tune")
MEASURING = "How to measure"
_measuring = attributes(MEASURING)
_running = attributes("How to run")
OUTPUT = "Output"
_output = attributes(OUTPUT)

RULES = said(
    "A Python file of rules: every public function in it with one parameter (the view). The file is run: "
    "use only files that you trust.",
    file_form(),
    heading=ASKED,
)
CHAIN = said(
    "Several models run one after the other for each request, in the given order, as one network.",
    YES,
    flag=True,
    heading=MODEL,
    rare=True,
)
CHECK = said(
    "First compare the numbers with those of the uncut model; wrong ones are refused (exit code 6).",
    YES,
    flag=False,
    called="--unchecked",
    heading=MODEL,
)
OPEN_SECONDS = said(
    "Most time to open each model file; otherwise 45s, and half a second for each megabyte of it.",
    span_form("90s"),
    name="open_seconds",
    heading=MODEL,
    rare=True,
)
ENGINE = said(
    "What runs the layers: a name (`gapless doctor` lists the engines), or module:Class or file.py:Class of "
    "your own; in `profile`, `tune` and `device bench` several that compete, with commas between. Otherwise "
    "mnn for ONNX files, in those three alongside onnxruntime, and callable for Python functions; in `run` "
    "and `trace` those of the profile. `tune`, `run` and `trace` also take simulated: no device, a cost "
    "table is played.",
    CODE,
    heading=DEVICE,
)
TIME_LIMIT = said(
    "Most time for each backend; the best that it has found by then is the answer.",
    span_form("10s"),
    heading=SOLVING,
)


@dataclass(frozen=True, kw_only=True)
class Opening(Said):
    """How model files are opened."""

    shape: Mapping[str, tuple[int, ...]] | None = _model(
        "Fixed shape of an input with dynamic dimensions, e.g. x=1,3,480,640; can be repeated. "
        "MODEL/INPUT=... where several models have inputs of that name.",
        SHAPES,
    )
    granularity: Granularity = _model(
        "How operators are grouped into layers; auto: layer, or block for very many tiny layers.",
        choice_form(Granularity),
        default=Granularity.AUTO,
        rare=True,
    )
    materialize: bool = _model(
        "Copy weights that are links to other files before reading them.", YES, rare=True
    )
    simplify: Simplification = _model(
        "Simplify ONNX files as far as their numbers stay, or not at all.",
        choice_form(Simplification),
        default=Simplification.AUTO,
        rare=True,
    )


@dataclass(frozen=True, kw_only=True)
class Inputs(Said):
    """What models are tried with."""

    feed: Path | None = _model(
        "Real inputs instead of random numbers: an .npz file with one array for each input, or a folder "
        "of them, used in turn. One more dimension in front counts requests. MODEL/INPUT where several "
        "models have inputs of that name.",
        file_form("FILE|FOLDER", Names.INPUTS),
        called="--input",
    )
    input_range: tuple[str, ...] = _model(
        "Random numbers of an input lie in this range, without HIGH, e.g. ids=0:30000; can be repeated.",
        LINES.with_metavar("INPUT=LOW:HIGH"),
        default=(),
        rare=True,
    )

    @property
    def samples(self) -> Samples | None:
        """The inputs; None: nothing is said of them."""
        if not self:
            return None
        from ..executor.samples import parse_ranges, read_samples

        return read_samples(self.feed, parse_ranges(self.input_range))


@dataclass(frozen=True, kw_only=True)
class Machine(Said):
    """What runs the layers: the engine, or several, are chosen by the model where none is said."""

    engine: str | None = attribute(ENGINE)
    device: Path | None = _device(
        "The units of this device as a platform file describes them: `gapless device detect --out FILE` "
        "writes one to edit (clusters, threads, memory, quotas).",
        file_form(),
    )
    units: tuple[str, ...] = _device(
        "Units to use (`gapless device detect` shows them); otherwise all.", LIST, default=()
    )
    emulate: Mapping[str, int] | None = _device(
        "Emulate a slower unit by a quota of processor time, e.g. core1=50%; can be repeated.",
        SHARES,
        rare=True,
    )
    precision: Precision = _device(
        "How exact the engine computes.", choice_form(Precision), default=Precision.HIGH, rare=True
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.device is not None and (self.emulate or self.precision is not Precision.HIGH):
            raise InvalidInputError(
                f"{self.device} says how fast and how exact its units are: change it there, or leave out "
                "--device"
            )


@dataclass(frozen=True, kw_only=True)
class Search(Said):
    """How plans are searched for."""

    pareto: str | None = _search(
        "Instead of the best plans all trade-offs of two or three terms, e.g. period,energy: every plan "
        "that no other of its class is better than. A time limit is for all of them together.",
        text_form("TERMS"),
        rare=True,
    )
    top: int = _search("How many of the best plans.", count_form(1, 100_000), default=1)
    distance: int = _search(
        "How many layers each plan runs at least on other units than every plan before it; of a workload, "
        "pairs of requests in the other order count, too.",
        count_form(1, 100_000),
        default=1,
        rare=True,
    )
    time_limit_s: float | None = attribute(TIME_LIMIT)
    memory_limit_bytes: int | None = _search(
        "Memory that a backend may take; it then runs in a child process, as third-party solvers always "
        "do (with half of the machine's memory, unless given).",
        SOME_SIZE,
        rare=True,
    )
    strict_rules: bool = _search("Refuse backends that merely check plans against the rules.", YES, rare=True)
    seed: int = _search("Seed of everything random.", count_form(0, 2**31 - 1), default=0, rare=True)
    threads: int = _search("Threads of a solver.", count_form(1, 1024), default=1, rare=True)
    start: str | None = _search(
        "What exact third-party solvers begin with: a plan and a bound of native algorithms, which take "
        "a share of the time limit, or nothing. both: `compare` asks them twice. Otherwise native; of "
        "many problems (--instances) none.",
        text_form("native|none|both"),
        rare=True,
    )

    @property
    def solver_options(self) -> SolveOptions:
        """The same for a backend."""
        from ..solvers.protocol import SolveOptions
        from ..solvers.sources import start_mode

        return self.made(SolveOptions, start=start_mode(self.start))


@dataclass(frozen=True, kw_only=True)
class Race(Said):
    """How plans are tried against each other, and against baselines."""

    groups: str | None = _race(
        "Groups of at most N units compute a chunk together, each some of its rows; plans of one and of "
        "several pipelines race against them. For one ONNX model, which is cut into pieces.",
        text_form("all|N"),
    )
    backends: tuple[str, ...] = _race(
        "Which backends plan, comma-separated; their plans are merged.",
        LIST.naming(Names.CODE),
        default=("native",),
    )
    costs: str | None = _race(
        "Co-run cost model that plans are made from: learned (the default where plans of this network, "
        "or of any on three units or more, were executed on this device before), heavy (the default "
        "otherwise), isolated (the default where latency comes first: one request is run at a time), "
        "interpolated, or a registered one."
    )
    rounds: int = _race(
        "Most rounds of measuring, learning from what was measured, and planning again; ends earlier "
        "when the best plan stands and none is predicted to be faster.",
        count_form(),
        default=1,
    )
    mode: TuningMode = _race(
        "race: the clearly slower leave after each rung; fixed: 10 s for everybody, as in BetterTogether.",
        choice_form(TuningMode),
        default=TuningMode.RACE,
        rare=True,
    )
    budget_s: float | None = _race(
        "How long to race: no further visit begins after it, the strongest candidates come first; "
        "profiling and planning do not count. Otherwise each candidate is measured at least twice.",
        span_form("60s", least="1s"),
    )
    sustain_s: float | None = _race(
        "Afterwards run the finalists in turns for this time: whether they slow down (heat, throttling), "
        "and whether the order of the first minute holds.",
        span_form("20min", least="600ms", most="24h"),
        rare=True,
    )
    truth: str | None = _race(
        "With --engine simulated and a shipped problem: the table that the device obeys; otherwise the "
        "default of --costs.",
        not_on_boards="a simulated device needs no board",
        rare=True,
    )
    noise_permille: int = _race(
        "With --engine simulated: random variation.", PERCENT, called="--noise", default=20, rare=True
    )
    store: Path | None = _race(
        "File of measurements; otherwise OUT/store.sqlite.",
        file_form(),
        not_on_boards="a board keeps its measurements with the run, and --out brings them back",
        rare=True,
    )


@dataclass(frozen=True, kw_only=True)
class Measuring(Said):
    """How costs of layers are measured."""

    side_by_side: bool = _model(
        "Measure for sharing the units (`--workload` of plan and tune), as several models always are "
        "without --chain; of one model, to be requested several times.",
        YES,
    )
    batch: tuple[int, ...] = _model(
        "Sizes of batches, e.g. 1,2,4: each is measured as a network of its own (net*4), of which "
        "`plan --workload net*4x2` and `plan --batches 1,2,4` speak. Implies --side-by-side; the model "
        "leaves the first dimension open, and --shape says 1.",
        SIZES_OF_BATCHES,
        default=(),
    )
    steady: bool = _measuring(
        "Warm each layer up until its times stop drifting: clocks and temperatures have settled then. At "
        "least three quarters of a second, and at most 5, for each measurement.",
        YES,
    )
    item_seconds: float | None = _measuring(
        "Least time for each item that is measured; otherwise 60ms. More even noise out.",
        span_form("100ms", least="1ms", most="1min"),
    )
    most_workers: int | None = _measuring(
        "Also measure up to this many workers of a unit at the same time; the problem says how many pay, and "
        "`serve` and `requests coordinate` with it start them.",
        count_form(2, MAX_WORKERS),
    )
    accept_noise: bool = _measuring(
        "Write the profile even if the machine was so noisy that it would be given up; notes say so.", YES
    )


@dataclass(frozen=True, kw_only=True)
class Running(Said):
    """How a plan is run and measured."""

    at: tuple[str, ...] = _model(
        "Where a model lies now, for a problem that was profiled elsewhere; can be repeated.",
        LINES.with_metavar("OLD=NEW"),
        default=(),
    )
    seconds: float | None = _running(
        "How long, after the warm-up.", span_form("5s", least="10ms", most="24h")
    )
    requests: int | None = _running("How many requests, after the warm-up.", count_form(1, 10_000_000))
    warm_up: int = _running("Requests that do not count.", count_form(0, 1_000_000), default=5)
    task_slots: int | None = _running(
        "Most requests of a stream on their way at once: more absorb hiccups, fewer wait less. Otherwise "
        "two for each chunk.",
        count_form(1, 1024),
    )
    restart: bool = _running("Replace lost workers, once.", YES)
    check: bool = attribute(CHECK, default=True)
    feed: Path | None = _running(
        "Check the plan on these inputs, and run it once on each: an .npz file with one array for each "
        "input, whose first dimension counts the requests, or a folder of them. --output writes what "
        "comes out.",
        file_form("FILE|FOLDER", Names.INPUTS),
        called="--input",
    )
    output: Path | None = _running("Where the outputs go, .npz.", file_form(names=Names.RESULT))
    trace: Path | None = _output(
        "Also write a Perfetto trace of some requests.", file_form(names=Names.RESULT)
    )


@dataclass(frozen=True, kw_only=True)
class Folder(Said):
    """The folder of a run, of a sweep or of a comparison."""

    out: Path = _output(
        "Folder for everything that is written.",
        file_form("PATH", Names.FOLDER),
        default=Path("gapless-out"),
    )
    resume: bool = _output(
        "Go on with what is in the folder: what is measured or answered stays, what failed does not.",
        YES,
    )
    overwrite: bool = _output(
        "Remove what is in the folder first: its files, and none of yours.", YES, rare=True
    )
