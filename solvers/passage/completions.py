"""Least and largest costs of the rest of a plan, by boundary and unit.

For rates r per unit, and while unit u runs up to boundary b, the least (or largest) sum of rates times loads
of the rest is

    V[b][u] = best(r_u T[b][u] + V[b+1][u],  r_u X[b][u] + best of S[b][v] over v != u),
    S[b][v] = r_v (E[b][v] + T[b][v]) + V[b+1][v],     V[N][u] = r_u X[N][u].

Prices as rates bound periods, ones bound latencies, a single one the load that a unit can get at most.
"""

from __future__ import annotations

import numpy as np

from .table import Floats, Table


def completions(table: Table, rates: Floats, *, largest: bool = False, hop: Floats | None = None) -> Floats:
    """Return the least (largest) cost of the rest by [boundary][rate][unit that runs up to there].

    Infinite where there is no rest. `hop`: what each change of the unit costs on top, by rate.
    """
    sign = -1.0 if largest else 1.0
    rates = sign * rates
    count, units = table.count, table.units
    found = np.empty((count + 1, len(rates), units))
    found[count] = rates * table.leave[count]
    time = np.where(table.able[:, None, :], rates * table.time[:, None, :], np.inf)
    enter, leave = rates * table.enter[:, None, :], rates * table.leave[:, None, :]
    if hop is not None:
        leave = leave + hop[:, None]
    columns = np.arange(len(rates))
    for at in range(count - 1, -1, -1):
        run = time[at] + found[at + 1]
        begun = enter[at] + run
        if at == 0:
            found[0] = begun
            break
        first = begun.argmin(axis=1)
        least = begun[columns, first]
        other = np.broadcast_to(least[:, None], begun.shape).copy()
        begun[columns, first] = np.inf
        other[columns, first] = begun.min(axis=1)
        away = leave[at] + other
        found[at] = away if table.must[at] else np.minimum(run, away)
    return sign * found
