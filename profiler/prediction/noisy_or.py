"""Gaussian prior of what chunks take beside each other: who is busy matters, not how many (section 5).

By how much a chunk c on unit u differs from what was expected of it, in a plan that uses the set S of units:

    ln t(c | S) - ln expected = (Omega_u(S) - E Omega_u(S)) D_c + g + a_u + sum_{v in S-u} p_uv + phi_u s_c
                                + sum_{l in c} share_l eps_lu + noise

D_c is ln(heavy / isolated) of the chunk, s_c its share of the whole network's time on u, share_l that of a
layer in its time. Omega_u(S) = 1 - prod_{v in S-u} (1 - q_uv) with q ~ Beta(1/2, 1/2) is a noisy-or (Pearl,
Probabilistic Reasoning in Intelligent Systems, 1988, section 4.3.2): each busy unit brings the chunk from its
isolated to its heavy time with its own probability, and several saturate. Everything else is Gaussian, and
so is Omega here: its first two moments are kept, so that all is one linear solve.

The standard deviations are constants. They were set on executions of other devices, with the model; halving
or doubling any of them moved the mean error by half a point at most. Nothing here is fitted to what is
judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

LEVEL, UNIT, PAIR, OWN, LAYER = 0.1, 0.2, 0.1, 0.3, 0.2
"""Prior standard deviations of g, a, p, phi and eps."""

NOISE = 0.1
"""Standard deviation of what is left of the longest chunk of a plan; shorter ones have more by the inverse of
their share of it."""

OTHER_NETWORK, SAME_NETWORK = 0.7, 0.9
"""Correlation of the terms of two sessions on one device; layers are shared within one network only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """Chunks, or parts of them, as the prior sees them: one row each.

    `session`, `network`, `unit`: indices of the session, of its network, and of the unit that it runs on.
    """

    session: Indices
    network: Indices
    unit: Indices
    company: Array  # 1 for each other unit that the plan uses, by [row][unit]
    slope: Array  # D of the chunk
    own: Array  # s of the chunk; 0 where the term phi is left out
    shares: Array  # share of each layer in its time, by [row][layer]; copies belong to no layer

    def rows(self, kept: Indices) -> Items:
        """Return some of the rows."""
        return Items(**{name: getattr(self, name)[kept] for name in Items.__dataclass_fields__})

    def merged(self, owner: Indices, weight: Array, count: int) -> Items:
        """Return weighted means of the rows of each owner, which differ in slope and shares only.

        `owner`, `weight`: of each row; the weights of an owner add up to 1.
        """
        mix = np.zeros((count, len(owner)))
        mix[owner, np.arange(len(owner))] = weight
        alike = self.rows(np.unique(owner, return_index=True)[1])
        return replace(alike, slope=mix @ self.slope, shares=mix @ self.shares)


def joined(items: Sequence[Items]) -> Items:
    """Return all rows of at least one."""
    names = Items.__dataclass_fields__
    return Items(**{name: np.concatenate([getattr(one, name) for one in items]) for name in names})


def omega_covariance(company: Array, other: Array) -> Array:
    """Return Cov[Omega_u(X), Omega_u(Y)] for sets X and Y of other busy units, by [row of X][row of Y].

    With independent q ~ Beta(1/2, 1/2), E(1 - q) = 1/2 and E(1 - q)^2 = 3/8, so that it is
    (3/8)^|X and Y| (1/2)^|X xor Y| - (1/2)^(|X| + |Y|).
    """
    total = np.outer(0.5 ** company.sum(axis=1), 0.5 ** other.sum(axis=1))
    found: Array = total * np.expm1(np.log(3 / 2) * (company @ other.T))  # the same, with one power less
    return found


def covariance(rows: Items, columns: Items) -> Array:
    """Return the prior covariance of what is to be learned of some chunks and of others."""
    alike = rows.unit[:, None] == columns.unit[None, :]
    omega = np.outer(rows.slope, columns.slope) * omega_covariance(rows.company, columns.company)
    pairs = PAIR**2 * (rows.company @ columns.company.T)
    own = OWN**2 * np.outer(rows.own, columns.own)
    layers = LAYER**2 * (rows.shares @ columns.shares.T)
    same = rows.session[:, None] == columns.session[None, :]
    network = rows.network[:, None] == columns.network[None, :]
    shared = np.where(same, 1.0, np.where(network, SAME_NETWORK, OTHER_NETWORK))
    kept = np.where(same, 1.0, np.where(network, SAME_NETWORK, 0.0))
    found: Array = shared * (LEVEL**2 + alike * (omega + UNIT**2 + pairs + own)) + kept * alike * layers
    return found


@dataclass(frozen=True, slots=True)
class Posterior:
    """What is known of all chunks after some were measured."""

    seen: Items  # what was measured
    root: Array  # lower Cholesky factor of its covariance, noise included
    solution: Array  # that covariance's inverse times what was found beyond expectation

    def mean(self, items: Items) -> Array:
        """Return the expected deviations of some chunks: logarithms."""
        found: Array = covariance(items, self.seen) @ self.solution
        return found

    def covariance(self, items: Items) -> Array:
        """Return the covariance of the deviations of some chunks, without noise."""
        explained = np.linalg.solve(self.root, covariance(self.seen, items))
        found: Array = covariance(items, items) - explained.T @ explained
        return found


def solved(seen: Items, beyond: Array, noise: Array) -> Posterior:
    """Return what is known after chunks took `beyond` (logarithms) more than was expected.

    `beyond`, `noise`: of each: what it took beyond expectation, and the standard deviation of what nothing
    explains.
    """
    root = np.asarray(np.linalg.cholesky(covariance(seen, seen) + np.diag(noise**2)), np.float64)
    return Posterior(seen, root, np.linalg.solve(root.T, np.linalg.solve(root, beyond)))
