"""What is here: version, doctor, platforms, networks, one problem."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from ...files import documents
from ...formulations.errors import InvalidInputError
from ...question.fields import Only
from ...question.subjects import Machine
from ...version import __version__
from ..base.answer import Answer, View, command
from ..base.exits import ExitCode
from ..options.boards import OnOption, on_boards
from ..options.problem import OutOption

if TYPE_CHECKING:
    from ...boards.running import Ran
    from ...formulations.hardware import Platform

_PLATFORMS_NEXT = (
    "`gapless show NAME` shows a problem, `gapless plan NAME` plans it; `gapless plan MODEL --platform "
    "CLUSTER` plans a model over devices."
)
_NETWORKS_NEXT = (
    "`gapless tools inspect NAME` shows a network, `gapless tune NAME` finds its fastest plan here. Too "
    "large for one file, and only planned over the devices of a cluster: "
)


@command("gapless tools version")
def tools_version() -> Answer:
    """Print the version."""
    return Answer.of("version", {}, lambda: Text(f"gapless {__version__}"))


@command("gapless doctor")
def doctor(
    *,
    on: OnOption = None,
    backends: Annotated[
        bool, typer.Option("--backends", help="Show what each backend can do with each kind of problem.")
    ] = False,
) -> Answer:
    """Say what works here, or on a board: Python, the machine, its engines, and what plans each problem."""
    if on is not None:
        if backends:
            raise InvalidInputError("--backends is about this machine: leave --on out")
        return _board(on)
    from ...answers.doctor import doctor_blocks
    from ...api.diagnosis import doctor as diagnose
    from ...files.diagnosis_document import diagnosis_document

    diagnosis = diagnose()
    return Answer(
        document=lambda: diagnosis_document(diagnosis),
        view=lambda: doctor_blocks(diagnosis, matrix=backends),
    )


def _board(on: str) -> Answer:
    from ...answers.boards import board_blocks
    from ...boards.checks import diagnose_board
    from ...boards.ssh import Address
    from ..base.progress import StepLine

    with StepLine() as line:
        found = diagnose_board(Address.of(on), report=line.report)
    code = ExitCode.OK if found.ok else ExitCode.FAILURE
    return Answer.of("board_diagnosis", found, lambda: board_blocks(found), code=code, ok=found.ok)


def _platform_of_board(ran: Ran, given: Mapping[str, Any]) -> View:
    from ...answers.problems import platform_blocks
    from ...formulations.hardware import Platform

    return platform_blocks(ran.read(Platform, "a platform"))


@command(
    "gapless device detect",
    "gapless device detect --units core0 --out device.json",
)
@on_boards(_platform_of_board)
def device_detect(
    *,
    machine: Annotated[Machine, Only.of("engine", "units", "emulate")],
    out: OutOption = None,
) -> Answer:
    """Show this machine as a platform: its clusters and cores as units."""
    from ...answers.problems import platform_blocks
    from ...api.device import this_device
    from ...api.engines import DEFAULT_ENGINE
    from ...formulations.files import PLATFORM, dump

    platform = this_device(
        engine=machine.engine or DEFAULT_ENGINE, units=machine.units, emulate=machine.emulate
    )
    text = dump(platform, PLATFORM)
    return Answer(
        document=lambda: {**documents.header("platform"), **json.loads(text)},
        view=lambda: platform_blocks(platform),
        files={"out": lambda: text},
    )


@command("gapless list problems")
def list_problems() -> Answer:
    """List the shipped problems, and the phones and clusters that --platform names."""
    from ...answers.blocks import Sentence
    from ...answers.clusters import clusters_blocks
    from ...answers.doctor import platforms_blocks
    from ...formulations.co_run import possible_models
    from ...profiler.clusters.catalog import cluster_names, shipped_cluster
    from ...profiler.coordination.catalog import (
        coordinated_phone_names,
        setting_network_names,
        setting_platform,
    )
    from ...profiler.platforms.catalog import methods_of, shipped_names, shipped_platform
    from ...profiler.platforms.workloads import phone_names, phone_network_names

    def phones(
        names: Iterable[str], platform: Callable[[str], Platform], networks: Sequence[str]
    ) -> list[dict[str, object]]:
        return [{"name": name, "units": platform(name).unit_names, "networks": networks} for name in names]

    clusters = [shipped_cluster(name) for name in cluster_names()]
    end = [Sentence(""), Sentence(_PLATFORMS_NEXT)]
    return Answer.of(
        "platforms",
        {},
        lambda: [*platforms_blocks(), *clusters_blocks(clusters), *end],
        problems=[{"name": name, "costs": possible_models(methods_of(name))} for name in shipped_names()],
        phones=phones(phone_names(), shipped_platform, phone_network_names()),
        coordinated_phones=phones(coordinated_phone_names(), setting_platform, setting_network_names()),
        clusters=clusters,
    )


@command("gapless list networks")
def list_networks() -> Answer:
    """List the built-in networks (true shapes, random weights) and applications (Python functions)."""
    from ...answers.blocks import Sentence
    from ...answers.doctor import networks_blocks
    from ...profiler.applications.catalog import applications
    from ...profiler.zoo.catalog import names_in_parts, zoo_entry, zoo_names

    entries = [zoo_entry(name) for name in sorted((*zoo_names(), *names_in_parts()))]
    rest = f"{', '.join(names_in_parts())}."
    declared = [(application, application.declared()) for application in applications()]
    return Answer.of(
        "networks",
        {},
        lambda: [*networks_blocks(entries, declared), Sentence(""), Sentence(_NETWORKS_NEXT + rest)],
        networks=entries,
        applications=[
            {
                **documents.plain_data(application),
                "inputs": model.inputs,
                "layers": [layer.name for layer in model.layers],
            }
            for application, model in declared
        ],
    )
