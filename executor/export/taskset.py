"""A shell script that runs an export: a process for each chunk, on its cores, connected by pipes."""

from __future__ import annotations

import shlex

from ...formulations.errors import InvalidInputError
from .manifest import RUNNER_NAME, ExportedStream, ExportedUnit, Manifest

_RUN = f'"$PYTHON" {RUNNER_NAME}'


def script_for(manifest: Manifest) -> str:
    """Return the script."""
    users = [{chunk.unit for chunk in stream.chunks} for stream in manifest.streams]
    shared = [unit.name for unit in manifest.units if sum(unit.name in units for units in users) > 1]
    if shared:
        raise InvalidInputError(
            f"{', '.join(shared)} serve several requests in the order of the plan, which processes that are "
            f"pinned by taskset do not keep: export --to {manifest.engine}, whose {RUNNER_NAME} keeps it"
        )
    what = ", ".join(network.name for network in manifest.networks)
    head = [
        "#!/bin/sh",
        f"# {_comment(what)} on {_comment(manifest.platform)}, deployment {manifest.deployment_id}:",
        "# a process for each chunk, connected by pipes. REQUESTS and PYTHON can be set from outside.",
        "# Exit code: that of the last process, 6 where numbers are wrong.",
        'cd "$(dirname "$0")" || exit 2',
        "PYTHON=${PYTHON:-python3} REQUESTS=${REQUESTS:-100}",
    ]
    units = {unit.name: unit for unit in manifest.units}
    emulated = [unit for unit in manifest.units if unit.quota_permille is not None]
    several = len(manifest.streams) > 1
    blocks = [
        _pipeline(stream, units, f" --stream {shlex.quote(stream.name)}" if several else "")
        for stream in manifest.streams
    ]
    if not several:
        return "\n".join([*head, *map(_quota, emulated), *blocks[0]]) + "\n"
    # Every stream runs by itself; what fails last is told.
    tail = ["CODE=0", 'for JOB in $JOBS; do wait "$JOB" || CODE=$?; done', 'exit "$CODE"']
    sides = [line for block in blocks for line in ("{", *block, '} & JOBS="$JOBS $!"')]
    return "\n".join([*head, "JOBS=", *map(_quota, emulated), *sides, *tail]) + "\n"


def _pipeline(stream: ExportedStream, units: dict[str, ExportedUnit], which: str) -> list[str]:
    lines = [f'{_RUN}{which} --feed --requests "$REQUESTS" |']
    for chunk in stream.chunks:
        cores = ",".join(map(str, units[chunk.unit].cores))
        pinned = f"taskset -c {cores} " if cores else ""
        lines.append(f"{pinned}{_RUN}{which} --chunk {chunk.number} --no-pin |")
    return [*lines, f"{_RUN}{which} --collect"]


def _quota(unit: ExportedUnit) -> str:
    share = (unit.quota_permille or 0) * max(1, len(unit.cores)) / 10
    return (
        f"# {_comment(unit.name)} was emulated by a quota, which nothing sets here; put this before its "
        f"taskset, as root: systemd-run --scope --quiet -p CPUQuota={share:g}%"
    )


def _comment(text: str) -> str:
    """Return a name that cannot end a comment."""
    return " ".join(text.split())
