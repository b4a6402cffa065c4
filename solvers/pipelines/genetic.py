"""EPipe's genetic algorithm over the pipeline type set (section 3.2.2, Algorithm 2), and random search.

A chromosome has S_max genes, each the number of a pipeline type or 0 for none; its fitness is the sum of the
rates. EPipe's fitness does not see that two pipelines use one device (erratum E6): here such chromosomes have
fitness 0, or are repaired by leaving out the genes that come too late. Generations are as many as in our
measurements; the paper prints neither population, generations, nor probabilities.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from ...formulations.pipelines.plans import Pipes
from ...formulations.pipelines.tables import Cluster, cluster_of
from ...formulations.problem import Problem
from ..protocol import Capabilities, Deadline, SolveOptions
from .arrays import build_arrays, merged
from .baselines import PipelineHeuristic, heuristic_capabilities
from .relaxed import Relaxation
from .solving import MOST_CELLS, MOST_STATES

GENERATIONS, POPULATION = 200, 60
"""How often a population is replaced, and how large it is."""

_CROSSOVER, _MUTATION = 0.8, 0.3

Genes = tuple[int, ...]


class _Types:
    """The pipeline type set of a problem, and chromosomes over it."""

    def __init__(self, cluster: Cluster, relaxation: Relaxation) -> None:
        self._relaxation, self._states = relaxation, relaxation.states
        self.types: list[int] = [0, *relaxation.types.tolist()]
        periods = relaxation.period_us
        self.rates = [0, *(cluster.rate(int(periods[state])) for state in self.types[1:])]
        self._used = [np.asarray(self._states.counted(state)) for state in self.types]
        self._counts = np.asarray(self._states.counts)
        self.genes = min(_most_genes(cluster), cluster.most_pipelines)
        self._excluded = relaxation.excluded

    @property
    def best_single(self) -> int:
        """The type with the highest rate."""
        return max(range(len(self.rates)), key=self.rates.__getitem__)

    def kept(self, genes: Sequence[int]) -> Genes:
        """Return the genes whose devices are free when they come."""
        used, found = np.zeros_like(self._counts), list[int]()
        for gene in genes:
            more = used + self._used[gene]
            fits = bool((more <= self._counts).all()) and not self._conflict(more)
            found.append(gene if fits else 0)
            used = more if fits else used
        return tuple(found)

    def _conflict(self, counts: np.ndarray[tuple[int], np.dtype[np.int64]]) -> bool:
        if self._excluded is None:
            return False
        return bool(self._excluded[self._states.of(np.repeat(np.arange(len(counts)), counts).tolist())])

    def rate(self, genes: Sequence[int]) -> int:
        """Return the sum of the rates."""
        return sum(map(self.rates.__getitem__, genes))

    def code(self, genes: Sequence[int]) -> Pipes:
        """Return the plan of a chromosome without overlaps."""
        states = [self.types[gene] for gene in genes if gene]
        return self._relaxation.plan(states) or ()


def _most_genes(cluster: Cluster) -> int:
    """Return S_max: all memory over the size of the network; the devices, where memory is no limit."""
    chain = cluster.chain
    sizes = [size for size in chain.unit_memory if size is not None]
    whole = chain.weights.whole
    if len(sizes) < cluster.device_count or not whole:
        return cluster.device_count
    return max(1, min(cluster.device_count, sum(sizes) // whole))


def _types(problem: Problem, deadline: Deadline) -> _Types | None:
    """Return the type set; None where there are too many sets of devices, or no pipeline."""
    cluster = cluster_of(problem)
    arrays = build_arrays(cluster)
    if merged(arrays, MOST_STATES, MOST_CELLS, 10**12) is not arrays:
        return None
    relaxation = Relaxation(cluster, arrays, deadline=deadline)
    return _Types(cluster, relaxation) if relaxation.feasible else None


class GeneticBackend(PipelineHeuristic):
    """EPipe's genetic algorithm; chromosomes with overlapping devices have fitness 0."""

    name: ClassVar[str] = "epipe-ga"
    capabilities: ClassVar[Capabilities] = heuristic_capabilities(
        "EPipe's genetic algorithm over pipeline types; overlapping devices have fitness 0"
    )
    repairs: ClassVar[bool] = False
    seeded: ClassVar[bool] = True

    def propose(self, problem: Problem, options: SolveOptions, deadline: Deadline) -> Iterator[Pipes]:
        """Yield better and better plans."""
        types = _types(problem, deadline)
        if types is None:
            return
        rng, best = random.Random(options.seed), 0
        population = [self._drawn(rng, types) for _ in range(POPULATION)]
        if self.seeded:
            population[0] = (types.best_single,) + (0,) * (types.genes - 1)
        for _ in range(GENERATIONS):
            if self.repairs:
                population = list(map(types.kept, population))
            fitness = [types.rate(genes) if types.kept(genes) == genes else 0 for genes in population]
            if max(fitness) > best:
                best = max(fitness)
                yield types.code(population[fitness.index(best)])
            if deadline.passed:
                return
            population = self._next(rng, types, population, fitness)

    def _drawn(self, rng: random.Random, types: _Types) -> Genes:
        return tuple(rng.randrange(len(types.types)) for _ in range(types.genes))

    def _next(
        self, rng: random.Random, types: _Types, population: list[Genes], fitness: list[int]
    ) -> list[Genes]:
        """Return the next generation: roulette selection, crossover at one place, mutation."""
        following: list[Genes] = []
        weights = fitness if any(fitness) else [1] * len(fitness)
        while len(following) < len(population):
            one, other = map(list, rng.choices(population, weights, k=2))
            if rng.random() < _CROSSOVER:
                place = rng.randint(0, types.genes)
                one[place:], other[place:] = other[place:], one[place:]
            if rng.random() < _MUTATION:
                for genes in (one, other):
                    genes[rng.randrange(types.genes)] = rng.randrange(len(types.types))
            following += [tuple(one), tuple(other)]
        return following[: len(population)]


class UnseededGeneticBackend(GeneticBackend):
    """The same without the best single pipeline in the first population."""

    name: ClassVar[str] = "epipe-ga-unseeded"
    capabilities: ClassVar[Capabilities] = heuristic_capabilities(
        "epipe-ga without the best single pipeline in its first population"
    )
    seeded: ClassVar[bool] = False


class RepairingGeneticBackend(GeneticBackend):
    """The same with repair of chromosomes whose pipelines use one device twice."""

    name: ClassVar[str] = "epipe-ga-repair"
    capabilities: ClassVar[Capabilities] = heuristic_capabilities(
        "epipe-ga that leaves out pipelines whose devices are taken"
    )
    repairs: ClassVar[bool] = True


class UnseededRepairingBackend(RepairingGeneticBackend):
    """The same with repair, and without the best single pipeline in the first population."""

    name: ClassVar[str] = "epipe-ga-repair-unseeded"
    capabilities: ClassVar[Capabilities] = heuristic_capabilities(
        "epipe-ga-repair without the best single pipeline in its first population"
    )
    seeded: ClassVar[bool] = False


class RandomSearchBackend(PipelineHeuristic):
    """As many random plans as the genetic algorithm tries: pipeline types that fit beside each other."""

    name: ClassVar[str] = "random-search"
    capabilities: ClassVar[Capabilities] = heuristic_capabilities(
        "random pipelines of the type set side by side, as many plans as epipe-ga tries"
    )

    def propose(self, problem: Problem, options: SolveOptions, deadline: Deadline) -> Iterator[Pipes]:
        """Yield better and better plans."""
        types = _types(problem, deadline)
        if types is None:
            return
        rng, best = random.Random(options.seed), 0
        for _ in range(GENERATIONS * POPULATION):
            drawn = tuple(rng.randrange(len(types.types)) for _ in range(types.genes))
            genes = types.kept(drawn)
            if types.rate(genes) > best:
                best = types.rate(genes)
                yield types.code(genes)
            if deadline.passed:
                return
