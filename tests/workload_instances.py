"""Random small workloads with every feature, for property tests."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from gapless.formulations.costs import CostTable, Interference, NetworkContention, NetworkCosts
from gapless.formulations.deployment import Mode
from gapless.formulations.flow_shop.quantities import TERMS as WORKLOAD_TERMS
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.formulations.network import Layer, Network, Tensor
from gapless.formulations.problem import Problem
from gapless.formulations.terms import Objective
from gapless.formulations.workload import Execution, LoadPolicy, Request, RequestOrder, Workload
from tests.powers import with_powers

UNITS = ("npu", "big", "gpu", "little")


def workload_problem(
    tables: dict[str, list[list[int | None]]],
    requests: list[str],
    *,
    copies: dict[str, list[list[int]]] | None = None,
    slowdown: list[list[int]] | None = None,
    high: tuple[str, ...] = (),
    memory_bytes: int | None = None,
    objective: str = "makespan",
    workload: Workload | None = None,
) -> Problem:
    """Return a problem from tables of microseconds by [layer][unit]; requests are named net0, net1, ...

    `high` networks have twice the intensity of the others and are of high contention.
    """
    units = UNITS[: len(next(iter(tables.values()))[0])]
    served = tuple(Request(name=f"{network}{i}", network=network) for i, network in enumerate(requests))
    return Problem(
        platform=with_powers(
            Platform(
                name="board",
                units=tuple(ProcessingUnit(name=unit) for unit in units),
                memory_bytes=memory_bytes,
            )
        ),
        networks=tuple(
            Network(name=name, layers=tuple(Layer(name=f"l{i}", weight_bytes=10) for i in range(len(rows))))
            for name, rows in tables.items()
        ),
        costs=CostTable(
            units=units,
            networks=tuple(
                NetworkCosts(
                    network=name,
                    layer_us=tuple(map(tuple, rows)),
                    transfer_in_us=tuple(map(tuple, (copies or {}).get(name, []))),
                )
                for name, rows in tables.items()
            ),
        ),
        objective=Objective.parse(objective),
        data=replace(workload, requests=served) if workload else Workload(requests=served),
        interference=_interference(units, slowdown, high),
    )


def _interference(
    units: tuple[str, ...], slowdown: list[list[int]] | None, high: tuple[str, ...]
) -> Interference | None:
    if slowdown is None and not high:
        return None
    rows = slowdown or [[0] * len(units) for _ in units]
    return Interference(
        units=units,
        slowdown_permille=tuple(map(tuple, rows)),
        networks=tuple(NetworkContention(network=name, intensity_permille=2000) for name in high),
        high_from_permille=2000,
    )


@st.composite
def workload_problems(
    draw: st.DrawFn,
    *,
    most_requests: int = 3,
    most_layers: int = 3,
    most_units: int = 3,
    objectives: st.SearchStrategy[Objective] | None = None,
) -> Problem:
    """Draw a problem with at most 3 requests of 3 layers on 3 units; few distinct times, so many ties."""
    units = UNITS[: draw(st.integers(1, most_units))]
    names = ("a", "b")[: draw(st.integers(1, 2))]
    networks = tuple(draw(_networks(name, most_layers)) for name in names)
    return Problem(
        platform=draw(_platforms(units)),
        networks=networks,
        costs=CostTable(
            units=units,
            networks=tuple(draw(_costs(n.name, len(n.layers), len(units))) for n in networks),
        ),
        objective=draw(objectives or workload_objectives()),
        data=draw(_workloads(names, most_requests)),
        interference=draw(st.one_of(st.none(), _interferences(units, names))),
    )


@st.composite
def workload_objectives(draw: st.DrawFn) -> Objective:
    """Draw one or two terms, the makespan most often."""
    others = sorted(set(WORKLOAD_TERMS) - {"makespan"})
    terms = draw(st.lists(st.sampled_from(["makespan"] * len(others) + others), min_size=1, max_size=2))
    return Objective(terms=tuple(dict.fromkeys(terms)))


@st.composite
def _networks(draw: st.DrawFn, name: str, most_layers: int) -> Network:
    count = draw(st.integers(1, most_layers))
    sizes = st.integers(0, 20)
    tensors = [
        Tensor(name=f"t{i}", bytes=draw(sizes), source=i - 1, targets=(draw(st.integers(i, count)),))
        for i in range(count)
        if draw(st.booleans())
    ]
    return Network(
        name=name,
        layers=tuple(Layer(name=f"l{i}", weight_bytes=draw(sizes)) for i in range(count)),
        tensors=tuple(tensors),
        forbidden_cuts=tuple(cut for cut in range(1, count) if draw(st.integers(0, 5)) == 0),
    )


@st.composite
def _costs(draw: st.DrawFn, name: str, layers: int, units: int) -> NetworkCosts:
    time = st.one_of(st.integers(1, 9), st.integers(1, 9), st.integers(10, 200), st.none())
    row = st.lists(time, min_size=units, max_size=units).map(tuple)
    rows = st.lists(
        st.lists(st.integers(0, 9), min_size=units, max_size=units).map(tuple),
        min_size=layers + 1,
        max_size=layers + 1,
    ).map(tuple)
    return NetworkCosts(
        network=name,
        layer_us=tuple(draw(row) for _ in range(layers)),
        transfer_in_us=draw(st.one_of(st.just(()), rows)),
        transfer_out_us=draw(st.one_of(st.just(()), st.just(()), rows)),
    )


@st.composite
def _platforms(draw: st.DrawFn, names: tuple[str, ...]) -> Platform:
    units = tuple(
        ProcessingUnit(
            name=name,
            cores=draw(st.sampled_from([(), (), (), (0,), (0, 1)])),
            memory_bytes=draw(st.sampled_from([None, None, None, 60])),
        )
        for name in names
    )
    memory = draw(st.sampled_from([None, None, None, 80, 150]))
    return with_powers(Platform(name="board", units=units, memory_bytes=memory))


@st.composite
def _workloads(draw: st.DrawFn, networks: tuple[str, ...], most_requests: int) -> Workload:
    columns = draw(st.integers(0, 3)) == 0
    stream = draw(st.integers(0, 5)) == 0
    late = st.sampled_from([0, 0, 0, 5, 40])
    deadline = st.sampled_from([None, None, None, 30, 300])
    count = draw(st.integers(1, most_requests))
    return Workload(
        requests=tuple(
            Request(
                name=f"r{i}",
                network=draw(st.sampled_from(networks)),
                arrival_us=0 if columns or stream else draw(late),
                deadline_us=None if stream else draw(deadline),
            )
            for i in range(count)
        ),
        order=draw(st.sampled_from(RequestOrder)),
        mode=Mode.STREAM if stream else Mode.BATCH,
        execution=Execution.COLUMNS if columns else Execution.ASYNCHRONOUS,
        load_policy=draw(st.sampled_from(LoadPolicy)),
        task_slots=None if columns else draw(st.sampled_from([None, None, None, 1, 2])),
    )


@st.composite
def _interferences(draw: st.DrawFn, units: tuple[str, ...], networks: tuple[str, ...]) -> Interference:
    slowdown = st.sampled_from([0, 20, 100, 300, 700])
    pressure = st.sampled_from([200, 1000, 2000])
    return Interference(
        units=units,
        slowdown_permille=tuple(tuple(0 if u == v else draw(slowdown) for v in units) for u in units),
        networks=tuple(
            NetworkContention(
                network=n, intensity_permille=draw(pressure), sensitivity_permille=draw(pressure)
            )
            for n in networks
        ),
        high_from_permille=draw(st.sampled_from([None, 1000, 2000])),
    )
