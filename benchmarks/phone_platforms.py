"""Write what is shipped of Hetero2Pipe's three phones, or check that it is up to date.

    python -m benchmarks.phone_platforms            # writes profiler/platforms/
    python -m benchmarks.phone_platforms --check    # compares only

The ten networks are read from the built-in ones, layer by layer; platforms, models and interference follow
from them (`gapless.profiler.platforms.phones`). Then the times of whole networks are shown, those that the
paper prints in bold with what the fitted rates alone would give.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gapless.formulations.network import Network
from gapless.profiler.analytic.costs import time_of
from gapless.profiler.analytic.model import UnitModel
from gapless.profiler.platforms.generate import describe, documents
from gapless.profiler.platforms.phones import PAPER_NETWORKS, Phone, phones

FOLDER = Path(__file__).parent.parent / "profiler" / "platforms"


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
    for phone in phones(networks):
        console.print(_times(phone, networks))
    return int(check and bool(stale))


def _read(path: Path) -> str | None:
    return path.read_text() if path.is_file() else None


def _times(phone: Phone, networks: list[Network]) -> Table:
    table = Table(title=f"{phone.platform.name}: ms alone (rates alone)", title_justify="left")
    table.add_column("network")
    for unit in phone.model.units:
        table.add_column(unit.unit, justify="right")
    for network in networks:
        table.add_row(network.name, *(_cell(network, unit) for unit in phone.model.units))
    return table


def _cell(network: Network, unit: UnitModel) -> Text:
    time = time_of(network, unit)
    if time is None:
        return Text("-")
    text = Text(f"{time.of(1) / 1000:.2f}")
    if any(total.printed and total.network == network.name for total in unit.totals):
        text.stylize("bold")
        bare = time_of(network, replace(unit, totals=()))
        text.append(f" ({bare.of(1) / 1000:.2f})" if bare is not None else "")
    return text


if __name__ == "__main__":
    raise SystemExit(main())
