"""Tables of costs of one network on up to four units."""

from __future__ import annotations

from gapless.formulations.costs import CostRows, CostTable, NetworkCosts, Provenance, TransferRows

UNITS = ("a", "b", "c", "d")


def table(
    method: str,
    rows: CostRows,
    *,
    into: TransferRows = (),
    out: TransferRows = (),
    notes: str = "",
    batch: int = 1,
) -> CostTable:
    costs = NetworkCosts(network="net", layer_us=rows, transfer_in_us=into, transfer_out_us=out)
    return CostTable(
        units=UNITS[: len(rows[0])],
        networks=(costs,),
        batch=batch,
        provenance=Provenance(method=method, source="here", notes=notes),
    )
