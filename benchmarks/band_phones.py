"""Write what is shipped of Band's four phones, or check that it is up to date.

    python -m benchmarks.band_phones            # writes profiler/coordination/
    python -m benchmarks.band_phones --check    # compares only

The networks of the paper are read from the built-in ones, layer by layer; platforms, models and behaviours
follow from them (`gapless.profiler.coordination.phones`). Then the times of whole networks are shown, where
the layers that a unit lacks are left out (marked *), and those of Table 1 in bold.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gapless.formulations.network import Network
from gapless.profiler.analytic.costs import network_costs
from gapless.profiler.coordination.generate import describe, documents
from gapless.profiler.coordination.phones import PAPER_NETWORKS, CoordinatedPhone, coordinated_phones

FOLDER = Path(__file__).parent.parent / "profiler" / "coordination"


def main() -> int:
    """Write or compare all files, show the times; 1 when a compared file differs."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--check", action="store_true", help="compare with what is shipped; write nothing")
    check = parser.parse_args().check
    networks = [describe(name) for name in PAPER_NETWORKS]
    stale = {path: text for path, text in documents(networks) if text != _read(FOLDER / path)}
    if not check:
        for path, text in stale.items():
            (FOLDER / path).parent.mkdir(exist_ok=True)
            (FOLDER / path).write_text(text)
    console = Console(width=110)
    console.print(f"{'stale' if check else 'written anew'}: {', '.join(stale) or 'nothing'}")
    for phone in coordinated_phones(networks):
        console.print(_times(phone, networks))
    return int(check and bool(stale))


def _read(path: Path) -> str | None:
    return path.read_text() if path.is_file() else None


def _times(phone: CoordinatedPhone, networks: list[Network]) -> Table:
    table = Table(title=f"{phone.platform.name}: ms alone, input included", title_justify="left")
    table.add_column("network")
    for unit in phone.model.units:
        table.add_column(unit.unit, justify="right")
    for network in networks:
        costs = network_costs(network, phone.model)
        cells = []
        for index, unit in enumerate(phone.model.units):
            times = [row[index] for row in costs.layer_us]
            total_us = sum(time or 0 for time in times) + costs.transfer_in_us[0][index]
            printed = any(total.printed and total.network == network.name for total in unit.totals)
            lacking = "*" if None in times else ""
            cells.append(Text(f"{total_us / 1000:.2f}{lacking}", style="bold" if printed else ""))
        table.add_row(network.name, *cells)
    return table


if __name__ == "__main__":
    raise SystemExit(main())
