"""What is there: shipped problems, built-in networks, policies, kinds of files, runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Annotated

from ...files import documents
from ..base.answer import Answer, command
from ..base.general_options import argument

if TYPE_CHECKING:
    from ...formulations.hardware import Platform

_PLATFORMS_NEXT = (
    "`gapless show NAME` shows a problem, `gapless plan NAME` plans it; `gapless plan MODEL --platform "
    "CLUSTER` plans a model over devices."
)
_NETWORKS_NEXT = (
    "`gapless tools inspect NAME` shows a network, `gapless tune NAME` finds its fastest plan here. Too "
    "large for one file, and only planned over the devices of a cluster: "
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


@command("gapless list policies")
def list_policies() -> Answer:
    """List who may decide about requests as they come, and the scenarios to try them on."""
    from ...answers.coordination import overview
    from ...profiler.coordination.catalog import scenario_names
    from ...solvers.coordination.policies import policy_names

    return Answer.of(
        "coordination_overview", {}, overview, scenarios=scenario_names(), policies=policy_names()
    )


@command("gapless list files")
def list_files() -> Answer:
    """List the kinds of files that gapless reads and writes."""
    from ...answers.files import formats_blocks
    from ...files.formats import FORMATS

    return Answer.of("formats", {}, lambda: formats_blocks(FORMATS), formats=FORMATS)


FoldersArgument = Annotated[
    list[str] | None,
    argument("[FOLDER...]", "Where to look, and below; otherwise the current folder."),
]


@command(
    "gapless list runs",
    "gapless list runs gapless-out --json",
)
def list_runs(folders: FoldersArgument = None) -> Answer:
    """List runs, the latest first: what was tuned or profiled, when, how far it came, and what won."""
    from ...answers.files import runs_blocks
    from ...files.runs import find_runs

    places = folders or ["."]
    found = find_runs(places)
    return Answer.of("runs", {}, lambda: runs_blocks(found, places), runs=found)
