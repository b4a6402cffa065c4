"""Which commands there are: in which module, under which heading, with which examples.

`gapless --help` shows the commands in this order. A module is loaded when one of its commands is asked for.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

PLAN = "Plan"
HERE = "On this machine"
LOOK = "Look"
MODELS = "Models and devices"
SLOWDOWN = "Who slows whom"
ABOUT = "About gapless"
OTHER = "Other"


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """What is known about a command before its module is loaded."""

    module: str  # module in `cli.commands` that registers it
    panel: str  # heading in `gapless --help`
    examples: tuple[str, ...] = ()  # command lines that work, with a remark behind "#"

    @property
    def epilog(self) -> str | None:
        """The end of its help; None without examples."""
        if not self.examples:
            return None
        words = "Example:" if len(self.examples) == 1 else "Examples:"
        return "\n\n".join([words, *(f"$ {example}" for example in self.examples)])


COMMANDS = {
    "plan": CommandEntry(
        "planning",
        PLAN,
        (
            "gapless plan pixel7a/alexnet-sparse --top 5 --out plan.json",
            "gapless plan pixel7a/octree --objective slack:50 --max-units 3",
            'gapless plan --workload "yolov4,bert" --platform kirin990 --time-limit 2 --out batch.json',
            "gapless plan --workload bertx4 --platform kirin990 --batches 1,4 --time-limit 2",
            "gapless plan vit-large --platform epipe-case-1 --batch 64",
        ),
    ),
    "compare": CommandEntry(
        "planning",
        PLAN,
        (
            "gapless compare pixel7a/alexnet-sparse",
            "gapless compare pixel7a/octree --backends native,exhaustive --top 3",
            "gapless compare --instances 'pixel7a/*' --backends native,exhaustive",
        ),
    ),
    "sweep": CommandEntry(
        "sweeping",
        PLAN,
        (
            "gapless sweep boards.json --out boards",
            "gapless sweep boards.json --out boards --resume --plans",
        ),
    ),
    "check": CommandEntry(
        "planning",
        PLAN,
        (
            "gapless check plan.json --plan 2",
            "gapless check pixel7a/alexnet-sparse plan.json --min-balance 60%",
        ),
    ),
    "simulate": CommandEntry(
        "planning", PLAN, ("gapless simulate plan.json --requests 5", "gapless simulate batch.json")
    ),
    "stream": CommandEntry(
        "streams",
        PLAN,
        ("gapless stream pixel7a/alexnet-sparse:3000 pixel7a/octree:500 --profile 20 --idle 1",),
    ),
    "coordinate": CommandEntry(
        "coordinating",
        PLAN,
        (
            "gapless coordinate",
            "gapless coordinate eagleeye --platform pixel4 --policy lst,sel,tflite-mp",
            "gapless coordinate four-apps --platform pixel4 --policy lst,edf --multipliers 1,2,3,4",
        ),
    ),
    "explain": CommandEntry("explaining", PLAN, ("gapless explain plan.json",)),
    "import": CommandEntry(
        "importing",
        PLAN,
        ("gapless import pipeedge models.yml device_types.yml devices.yml --model net",),
    ),
    "describe-device": CommandEntry(
        "estimates",
        HERE,
        ("gapless describe-device --units core0 --networks squeezenet --out device.json",),
    ),
    "predict-costs": CommandEntry(
        "estimates",
        HERE,
        (
            "gapless predict-costs resnet50 --device device.json --out estimated.json",
            "gapless predict-costs vit-large --device device.json --model transformer",
        ),
    ),
    "learn-costs": CommandEntry(
        "estimates", HERE, ("gapless learn-costs predictor", "gapless learn-costs predictor --no-measure")
    ),
    "tune": CommandEntry(
        "tuning",
        HERE,
        (
            "gapless tune squeezenet --top 5 --budget 60 --out squeezenet",
            "gapless tune pixel7a/alexnet-sparse --engine simulated --top 5",
            "gapless tune pixel7a/alexnet-sparse --engine simulated --noise 5% --out noisy",
        ),
    ),
    "profile": CommandEntry(
        "running",
        HERE,
        (
            "gapless profile squeezenet --units core0 --out profile",
            "gapless profile model.onnx --shape x=1,3,480,640 --out profile --overwrite",
        ),
    ),
    "run": CommandEntry("running", HERE, ("gapless run gapless-out --seconds 2",)),
    "serve": CommandEntry(
        "serving",
        HERE,
        (
            "gapless serve squeezenet mobilenetv2 --seconds 1 --port 0",
            "gapless serve squeezenet --deadline squeezenet=50 --late drop --seconds 1 --port 0",
        ),
    ),
    "trace": CommandEntry("running", HERE, ("gapless trace plan.json --simulated --out trace.json",)),
    "export": CommandEntry("exporting", HERE, ("gapless export gapless-out --to onnx",)),
    "report": CommandEntry(
        "reporting",
        LOOK,
        (
            "gapless report gapless-out --out report.html",
            "gapless report plan.json",
            "gapless report gapless-out noisy    # two runs: how they differ",
        ),
    ),
    "show": CommandEntry(
        "showing",
        LOOK,
        (
            "gapless show pixel7a/alexnet-sparse --out problem.json",
            'gapless show --workload "yolov4,bert" --platform kirin990',
        ),
    ),
    "runs": CommandEntry("runs", LOOK, ("gapless runs", "gapless runs gapless-out --json")),
    "platforms": CommandEntry("about", MODELS, ("gapless platforms", "gapless platforms --detect")),
    "networks": CommandEntry("about", MODELS, ("gapless networks",)),
    "inspect": CommandEntry(
        "models",
        MODELS,
        (
            "gapless inspect squeezenet",
            "gapless inspect squeezenet --split 4",
            "gapless inspect squeezenet --pieces exact",
            "gapless inspect retinaface --support pixel4",
        ),
    ),
    "bench-engine": CommandEntry(
        "models",
        MODELS,
        (
            "gapless bench-engine squeezenet --units core0 --seconds 0.2",
            "gapless bench-engine --engine onnxruntime --check",
        ),
    ),
    "interference": CommandEntry(
        "interference",
        SLOWDOWN,
        ("gapless interference pixel7a --svg map.svg", "gapless interference squeezenet --beside core1"),
    ),
    "contention": CommandEntry(
        "contention",
        SLOWDOWN,
        (
            "gapless contention squeezenet mobilenetv2 --no-pairs --out slow.json",
            "gapless contention vgg16 --platform kirin990 --parts 4 --out slow.json",
        ),
    ),
    "predict": CommandEntry(
        "prediction", SLOWDOWN, ("gapless predict gapless-out/executions.json --costs heavy",)
    ),
    "links": CommandEntry(
        "links",
        MODELS,
        (
            "gapless links --local 2 --rounds 2 --shards 60 --out cluster.json",
            "gapless links --address 192.168.1.10:6379 --out cluster.json",
            "gapless links --samples cluster.links.json --out cluster.json",
        ),
    ),
    "doctor": CommandEntry("about", ABOUT, ("gapless doctor",)),
    "schema": CommandEntry("formats", ABOUT, ("gapless schema plan --out plan.schema.json",)),
    "cache": CommandEntry("models", ABOUT, ("gapless cache",)),
    "completion": CommandEntry(
        "completion",
        ABOUT,
        (
            "gapless completion bash > gapless.bash    # then: source gapless.bash",
            "gapless completion zsh > ~/.zfunc/_gapless",
            "gapless completion fish > ~/.config/fish/completions/gapless.fish",
        ),
    ),
    "version": CommandEntry("about", ABOUT, ("gapless version",)),
}
"""In the order of `gapless --help`."""

SYNONYMS = {
    "bench": "bench-engine",
    "benchmark": "bench-engine",
    "device": "platforms",
    "devices": "platforms",
    "draw": "report",
    "execute": "run",
    "html": "report",
    "history": "runs",
    "list": "platforms",
    "measure": "profile",
    "models": "networks",
    "optimise": "tune",
    "optimize": "tune",
    "schedule": "plan",
    "score": "check",
    "solve": "plan",
    "validate": "check",
    "view": "show",
    "why": "explain",
}
"""What people try first, and the command that does it."""

_UNKNOWN = CommandEntry("", OTHER)


def entry(name: str) -> CommandEntry:
    """Return what is known about a command; one that is not in the table is shown under "Other"."""
    return COMMANDS.get(name, _UNKNOWN)


def load(names: Sequence[str] = ()) -> None:
    """Load the modules of some commands; of all without names."""
    modules = dict.fromkeys(found.module for name, found in COMMANDS.items() if not names or name in names)
    for module in modules:
        import_module(f"..commands.{module}", __package__)


def summary(name: str) -> str:
    """Return what a command does, from its docstring, without loading its module; empty if it has none."""
    path = Path(__file__).parents[1] / "commands" / f"{COMMANDS[name].module}.py"
    if not path.is_file():
        return ""
    written = name.replace("-", "_")
    for node in _parsed(path).body:
        if isinstance(node, ast.FunctionDef) and node.name.rstrip("_") == written:
            return (ast.get_docstring(node) or "").split("\n")[0]
    return ""


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def place(name: str | None) -> int:
    """Return the place of a command in the help."""
    return list(COMMANDS).index(name) if name in COMMANDS else len(COMMANDS)
