"""Which commands there are: in which module, under which heading, with which examples.

`gapless --help` shows the commands in this order, and groups of the rest. A module is loaded when one of its
commands is asked for.
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


GROUP = "More, by subject"
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
            'gapless plan --workload "yolov4,bert" --platform kirin990 --time-limit 2s --out batch.json',
            "gapless plan --workload bertx4 --platform kirin990 --batches 1,4 --time-limit 2s",
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
    "simulate": CommandEntry(
        "planning", PLAN, ("gapless simulate plan.json --requests 5", "gapless simulate batch.json")
    ),
    "explain": CommandEntry("explaining", PLAN, ("gapless explain plan.json",)),
    "sweep": CommandEntry(
        "sweeping",
        PLAN,
        (
            "gapless sweep boards.json --out boards",
            "gapless sweep boards.json --out boards --resume --plans",
        ),
    ),
    "tune": CommandEntry(
        "tuning",
        HERE,
        (
            "gapless tune squeezenet --top 5 --budget 60s --out squeezenet",
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
    "run": CommandEntry("running", HERE, ("gapless run gapless-out --seconds 2s",)),
    "serve": CommandEntry(
        "serving",
        HERE,
        (
            "gapless serve squeezenet mobilenetv2 --seconds 1s --port 0",
            "gapless serve squeezenet --deadline squeezenet=50ms --late drop --seconds 1s --port 0",
        ),
    ),
    "export": CommandEntry("exporting", HERE, ("gapless export gapless-out --to onnx",)),
    "doctor": CommandEntry("about", HERE, ("gapless doctor",)),
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
    "device detect": CommandEntry(
        "about", GROUP, ("gapless device detect", "gapless device detect --units core0 --out device.json")
    ),
    "device describe": CommandEntry(
        "estimates",
        GROUP,
        ("gapless device describe --units core0 --networks squeezenet --out device.json",),
    ),
    "device bench": CommandEntry(
        "models",
        GROUP,
        (
            "gapless device bench squeezenet --units core0 --seconds 200ms",
            "gapless device bench --engine onnxruntime --check",
        ),
    ),
    "device links": CommandEntry(
        "links",
        GROUP,
        (
            "gapless device links --local 2 --rounds 2 --shards 60 --out cluster.json",
            "gapless device links --address 192.168.1.10:6379 --out cluster.json",
            "gapless device links --samples cluster.links.json --out cluster.json",
        ),
    ),
    "costs predict": CommandEntry(
        "estimates",
        GROUP,
        (
            "gapless costs predict resnet50 --device device.json --out estimated.json",
            "gapless costs predict vit-large --device device.json --model transformer",
        ),
    ),
    "costs learn": CommandEntry(
        "estimates", GROUP, ("gapless costs learn predictor", "gapless costs learn predictor --no-measure")
    ),
    "costs judge": CommandEntry(
        "prediction", GROUP, ("gapless costs judge gapless-out/executions.json --costs heavy",)
    ),
    "costs interference": CommandEntry(
        "interference",
        GROUP,
        (
            "gapless costs interference pixel7a --svg map.svg",
            "gapless costs interference squeezenet --beside core1",
        ),
    ),
    "costs contention": CommandEntry(
        "contention",
        GROUP,
        (
            "gapless costs contention squeezenet mobilenetv2 --no-pairs --out slow.json",
            "gapless costs contention vgg16 --platform kirin990 --parts 4 --out slow.json",
        ),
    ),
    "list problems": CommandEntry("about", GROUP, ("gapless list problems",)),
    "list networks": CommandEntry("about", GROUP, ("gapless list networks",)),
    "list policies": CommandEntry("coordinating", GROUP, ("gapless list policies",)),
    "list files": CommandEntry("formats", GROUP, ("gapless list files",)),
    "list runs": CommandEntry("runs", GROUP, ("gapless list runs", "gapless list runs gapless-out --json")),
    "requests coordinate": CommandEntry(
        "coordinating",
        GROUP,
        (
            "gapless requests coordinate eagleeye --platform pixel4 --policy lst,sel,tflite-mp",
            "gapless requests coordinate four-apps --platform pixel4 --policy lst --multipliers 1,2",
        ),
    ),
    "requests stream": CommandEntry(
        "streams",
        GROUP,
        ("gapless requests stream pixel7a/alexnet-sparse:300 pixel7a/octree:9 --profile 20s --idle 1s",),
    ),
    "tools check": CommandEntry(
        "planning",
        GROUP,
        (
            "gapless tools check plan.json --plan 2",
            "gapless tools check pixel7a/alexnet-sparse plan.json --min-balance 60%",
        ),
    ),
    "tools inspect": CommandEntry(
        "models",
        GROUP,
        (
            "gapless tools inspect squeezenet",
            "gapless tools inspect squeezenet --split 4",
            "gapless tools inspect squeezenet --pieces exact",
            "gapless tools inspect retinaface --support pixel4",
        ),
    ),
    "tools trace": CommandEntry(
        "running", GROUP, ("gapless tools trace plan.json --simulated --out trace.json",)
    ),
    "tools import": CommandEntry(
        "importing",
        GROUP,
        ("gapless tools import pipeedge models.yml device_types.yml devices.yml --model net",),
    ),
    "tools schema": CommandEntry("formats", GROUP, ("gapless tools schema plan --out plan.schema.json",)),
    "tools cache": CommandEntry("models", GROUP, ("gapless tools cache",)),
    "tools completion": CommandEntry(
        "completion",
        GROUP,
        (
            "gapless tools completion bash > gapless.bash    # then: source gapless.bash",
            "gapless tools completion zsh > ~/.zfunc/_gapless",
            "gapless tools completion fish > ~/.config/fish/completions/gapless.fish",
        ),
    ),
    "tools version": CommandEntry("about", GROUP, ("gapless tools version",)),
}
"""In the order of `gapless --help`."""

GROUPS = {
    "device": "This device and its links: find units, measure engines, describe it for predictions.",
    "costs": "Costs that are predicted or learned, and how units slow each other down.",
    "list": "What is there: shipped problems, built-in networks, policies, kinds of files, runs.",
    "requests": "Requests as they come, and networks one after the other.",
    "tools": "Check plans, look into models, file formats, import, caches, completion.",
}
"""Groups of commands: "device bench" is a command of the group "device"."""

RENAMED = {
    "bench-engine": ("device bench",),
    "cache": ("tools cache",),
    "check": ("tools check",),
    "completion": ("tools completion",),
    "contention": ("costs contention",),
    "coordinate": ("requests coordinate",),
    "describe-device": ("device describe",),
    "import": ("tools import",),
    "inspect": ("tools inspect",),
    "interference": ("costs interference",),
    "learn-costs": ("costs learn",),
    "links": ("device links",),
    "networks": ("list networks",),
    "platforms": ("list problems", "device detect"),
    "predict": ("costs judge",),
    "predict-costs": ("costs predict",),
    "runs": ("list runs",),
    "schema": ("tools schema",),
    "stream": ("requests stream",),
    "trace": ("tools trace",),
    "version": ("tools version",),
}
"""What commands were called before there were groups, and are called now."""

SYNONYMS = {
    "bench": "device bench",
    "benchmark": "device bench",
    "devices": "device detect",
    "draw": "report",
    "execute": "run",
    "html": "report",
    "history": "list runs",
    "measure": "profile",
    "models": "list networks",
    "optimise": "tune",
    "optimize": "tune",
    "problems": "list problems",
    "schedule": "plan",
    "score": "tools check",
    "solve": "plan",
    "validate": "tools check",
    "view": "show",
    "why": "explain",
}
"""What people try first, and the command that does it."""

_UNKNOWN = CommandEntry("", OTHER)


def called(words: Sequence[str]) -> str:
    """Return the command that words name, "plan" or "device bench"; or a group, or what is no command."""
    names = [word for word in words if not word.startswith("-")]
    return " ".join(names[: 2 if names[:1] and names[0] in GROUPS else 1])


def command_name(function: str) -> str:
    """Return the name of the command that a function is: `device_bench` is "device bench"."""
    words = function.rstrip("_").replace("_", "-")
    group, dash, rest = words.partition("-")
    return f"{group} {rest}" if dash and group in GROUPS else words


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
    for node in _parsed(path).body:
        if isinstance(node, ast.FunctionDef) and command_name(node.name) == name:
            return (ast.get_docstring(node) or "").split("\n")[0]
    return ""


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))
