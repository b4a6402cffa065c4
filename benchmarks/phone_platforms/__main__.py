"""Write what is shipped of the phones of Hetero2Pipe and Band, or check that it is up to date.

    python -m benchmarks.phone_platforms            # writes profiler/platforms/ and profiler/coordination/
    python -m benchmarks.phone_platforms --check    # compares only

The papers' networks are read from the built-in ones, layer by layer; platforms, models, interference and
behaviours follow from them (`hetero2pipe`, `band`).
Then the times of whole networks are shown: without the layers that a unit lacks (marked *), those that the
paper prints in bold, with what the fitted rates alone would give.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gapless.formulations.network import Network
from gapless.profiler.analytic.costs import network_costs, time_of
from gapless.profiler.analytic.model import AnalyticModel, UnitModel

from . import band, hetero2pipe
from .files import band_files, describe_band, describe_hetero2pipe, hetero2pipe_files

PROFILER = Path(__file__).parents[2] / "profiler"


def main() -> int:
    """Write or compare all files, show the times; 1 when a compared file differs."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--check", action="store_true", help="compare with what is shipped; write nothing")
    check = parser.parse_args().check
    console = Console(width=110)

    networks = [describe_hetero2pipe(name) for name in hetero2pipe.PAPER_NETWORKS]
    stale = _refresh(PROFILER / "platforms", dict(hetero2pipe_files(networks)), check=check)
    for phone in hetero2pipe.phones(networks):
        console.print(_times(phone.platform.name, phone.model, networks))

    networks = [describe_band(name) for name in band.PAPER_NETWORKS]
    stale += _refresh(PROFILER / "coordination", dict(band_files(networks)), check=check)
    for coordinated in band.coordinated_phones(networks):
        console.print(_times(coordinated.platform.name, coordinated.model, networks))

    console.print(f"{'stale' if check else 'written anew'}: {', '.join(stale) or 'nothing'}")
    return int(check and bool(stale))


def _refresh(folder: Path, documents: dict[str, str], *, check: bool) -> list[str]:
    """Write those documents that differ from the files of a folder, unless they are only checked."""
    stale = [path for path, text in documents.items() if _read(folder / path) != text]
    if not check:
        for path in stale:
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_text(documents[path])
    return stale


def _read(path: Path) -> str | None:
    return path.read_text() if path.is_file() else None


def _times(platform: str, model: AnalyticModel, networks: Sequence[Network]) -> Table:
    table = Table(title=f"{platform}: ms, input included (rates alone)", title_justify="left")
    table.add_column("network")
    for unit in model.units:
        table.add_column(unit.unit, justify="right")
    for network in networks:
        costs = network_costs(network, model)
        columns = zip(*costs.layer_us, strict=True)
        inputs_us = costs.transfer_in_us[0]
        cells = map(_cell, [network] * len(model.units), model.units, columns, inputs_us)
        table.add_row(network.name, *cells)
    return table


def _cell(network: Network, unit: UnitModel, times: Sequence[int | None], input_us: int) -> Text:
    lacking = "*" if None in times else ""
    text = Text(f"{(sum(time or 0 for time in times) + input_us) / 1000:.2f}{lacking}")
    if any(total.printed and total.network == network.name for total in unit.totals):
        text.stylize("bold")
        bare = time_of(network, replace(unit, totals=()))
        text.append(f" ({bare.of(1) / 1000:.2f})" if bare is not None else "")
    return text


if __name__ == "__main__":
    raise SystemExit(main())
