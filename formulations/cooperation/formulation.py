"""Groups of devices as a formulation: what the rest of gapless knows about them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from math import comb
from typing import ClassVar

from ..formulation import Formulation, of_tables
from ..groups import Cooperation
from ..model import Encoded
from ..problem import Problem
from ..remaining import other_devices
from ..scores import Violation
from ..terms import PlanNumbers, Term
from . import judge
from .encoding import encode_groups
from .operation import CooperationOperation
from .plans import Parts, plan_of
from .quantities import QUANTITIES, TERMS, GroupValues
from .service import Part
from .tables import Groups, build_tables, groups_of
from .view import GroupView


def all_parts(groups: Groups) -> Iterator[Parts]:
    """Yield every well-formed plan: consecutive chunks, each with a group of its own."""
    begin: defaultdict[int, list[Part]] = defaultdict(list)
    for part in groups.possible():
        begin[part[0]].append(part)

    def plans(at: int, used: frozenset[int]) -> Iterator[Parts]:
        if at == groups.chain.layer_count:
            yield ()
            return
        for part in begin[at]:
            if used.isdisjoint(part[2]):
                for rest in plans(part[1], used | set(part[2])):
                    yield part, *rest

    yield from plans(0, frozenset())


def near_parts(groups: Groups, parts: Parts) -> Iterator[Parts]:
    """Yield plans with a device more or less in a group, or two chunks cut otherwise or joined."""
    busy = {device for _, _, group in parts for device in group}
    free = [device for device in range(groups.device_count) if device not in busy]
    for place, (start, stop, group) in enumerate(parts):
        head, tail = parts[:place], parts[place + 1 :]
        fewer = [tuple(other for other in group if other != device) for device in group if len(group) > 1]
        more = [tuple(sorted((*group, device))) for device in free]
        yield from _served(groups, ((*head, (start, stop, own), *tail) for own in (*fewer, *more)))
        for _, end, following in tail[:1]:
            rest = tail[1:]
            joined = ((*head, (start, end, own), *rest) for own in (group, following))
            cuts = (cut for cut in groups.chain.cuts if start < cut < end and cut != stop)
            moved = ((*head, (start, cut, group), (cut, end, following), *rest) for cut in cuts)
            yield from _served(groups, (*joined, *moved))


def _served(groups: Groups, plans: Iterable[Parts]) -> Iterator[Parts]:
    """Yield the plans whose groups can serve their chunks."""
    for parts in plans:
        able = (groups.chain.runs(start, stop, d) for start, stop, group in parts for d in group)
        if all(able) and all(groups.service(part) is not None for part in parts):
            yield parts


def count_parts(groups: Groups) -> int:
    """Return an upper bound on the number of well-formed plans.

    Exact when every group can serve every chunk: c chunks have C(N-1, c-1) cuts, and each device is in one of
    the c groups or in none, with no group empty.
    """
    pieces, devices = len(groups.chain.cuts) - 1, groups.device_count
    return sum(comb(pieces - 1, c - 1) * _onto(devices, c) for c in range(1, min(pieces, devices) + 1))


def _onto(devices: int, chunks: int) -> int:
    """Return in how many ways devices go into a number of groups, none empty; devices may be left out."""
    return sum((-1) ** k * comb(chunks, k) * (chunks - k + 1) ** devices for k in range(chunks + 1))


class CooperationFormulation(Formulation[Groups, Parts]):
    """One network as an endless stream through chunks, each served by a group of devices."""

    name: ClassVar[str] = "cooperation"
    label: ClassVar[str] = "problems of groups of devices"
    data_key: ClassVar[str | None] = "cooperation"
    data_type: ClassVar[type | None] = Cooperation
    terms = TERMS
    tie_break: ClassVar[tuple[str, ...]] = (Term.DEVICES, Term.PERIOD, Term.LATENCY)
    quantities = QUANTITIES
    limits: ClassVar[tuple[str, ...]] = ("max_period_us", "max_latency_us", "min_units", "max_units")
    one_network: ClassVar[bool] = True
    operation = CooperationOperation()
    incomplete: ClassVar[str] = (
        "every layer can run somewhere, but no line of groups covers the network: memory, links or cuts are "
        "in the way"
    )
    tables = staticmethod(build_tables)
    other_units = staticmethod(other_devices)
    code = of_tables(judge.well_formed)
    plan = of_tables(plan_of)
    numbers = of_tables(GroupValues)
    count = of_tables(count_parts)
    codes = of_tables(all_parts)
    neighbours = of_tables(near_parts)

    def defects(self, problem: Problem) -> Iterator[str]:
        """Yield what does not go with the devices and the network."""
        if len(problem.networks) != 1:
            yield f"groups are for one network, the problem has {len(problem.networks)}"
        else:
            yield from problem.data.mismatches(problem.platform, problem.networks[0])

    def view(self, problem: Problem) -> GroupView:
        """Return what rules can say."""
        return GroupView(problem.network, groups_of(problem))

    def broken(self, problem: Problem, code: Parts, numbers: PlanNumbers) -> Iterator[Violation]:
        """Yield links, cuts, conflicts and capacities that a plan breaks."""
        assert isinstance(numbers, GroupValues)
        return judge.broken(numbers)

    def columns(self, numbers: PlanNumbers) -> Mapping[str, tuple[int | None, ...]]:
        """Return by device its chunk, rows, time of computing and of its group, halo, bytes and energy."""
        assert isinstance(numbers, GroupValues)
        found = {
            "busy_us": numbers.busy_us,
            "stage_us": numbers.stage_us,
            "rows": numbers.rows,
            "extra_permille": numbers.extra_permille,
            "weight_bytes": numbers.weight_bytes,
            "memory_bytes": numbers.memory_bytes,
            "chunk": {device: index + 1 for device, index in numbers.place.items()},
        }
        if numbers.groups.data.devices.power_mw:
            found |= {"computing_nj": numbers.computing_nj, "standby_nj": numbers.standby_nj}
        devices = range(numbers.groups.device_count)
        return {name: tuple(map(row.get, devices)) for name, row in found.items()}

    def rate(self, numbers: PlanNumbers) -> float:
        """Return the requests a second."""
        assert isinstance(numbers, GroupValues)
        return 1e6 / max(1, numbers.period_us)

    def key(self, problem: Problem, code: Parts) -> tuple[int, ...]:
        """Return (start, stop) of every device; last where it is not used."""
        groups = groups_of(problem)
        own = {device: (start, stop) for start, stop, group in code for device in group}
        unused = (groups.chain.layer_count, 0)
        return tuple(number for d in range(groups.device_count) for number in own.get(d, unused))

    def plan_class(self, problem: Problem) -> str:
        """Return where the network is cut, and that no device is in two groups."""
        data = problem.data
        unit = "device" if data.devices.links else "unit"
        many = "" if data.most_group == 1 else "s"
        most = f" of at most {data.most_group} {unit}{many}" if data.most_group is not None else ""
        found = data.over_graph
        cuts = "given pieces" if found is None else f"chunks that are best over {found.sets} down-sets"
        speeds = {(link.bytes_per_second, link.latency_us) for link in data.devices.links}
        rule = f", {data.axis} shared by rule" if len(speeds) > 1 else ""
        return f"plans of one line of groups{most}, cut between the {cuts}, each {unit} in at most one{rule}"

    def outside(self, problem: Problem) -> str:
        """Return that there are other cuts."""
        if problem.data.over_graph is not None:
            return "Plans with other cuts or several lines are not looked at."
        return "Plans with cuts within the pieces are not looked at; --over-graph does, for a model."

    def encode(
        self, problem: Problem, *, top: int = 1, relaxation: bool = False, known: Parts | None = None
    ) -> Encoded[Parts]:
        """Return the model by chunks and groups (`encoding.py`)."""
        return encode_groups(problem)


FORMULATION = CooperationFormulation()
