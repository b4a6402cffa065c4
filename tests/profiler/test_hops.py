"""What hops cost besides copies: measured in trials, kept in the profile, part of the predictions."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

import gapless
from gapless.answers.measured import profile_blocks
from gapless.api.execution import profiled_problem
from gapless.api.slowdown.side_by_side import side_by_side
from gapless.formulations.deployment import Deployment
from gapless.formulations.errors import ExecutionError
from gapless.formulations.files import dump, parse
from gapless.formulations.history import History, Interval
from gapless.formulations.judge import score
from gapless.formulations.plan import Chunk, Plan
from gapless.formulations.streams import Stream
from gapless.profiler.hops import HopCost, Kept, hop_us, passed
from gapless.profiler.profile import PROFILE, Method, Profile
from gapless.view.terminal.blocks import blocks_view

from .fakes import PLATFORM, FakeBench, Shelf
from .test_profile import BOTH, LAYERS, SIZES, bench, take

TWO = replace(PLATFORM, units=PLATFORM.units[:2])
HAND_OVER_NS, BEYOND_NS = 70_000, 130_000


@dataclass
class World:
    """Plays trials: chunks take what the bench says, and a hop costs more; counts how often it is asked.

    `dearest`: the unit to which a hand-over takes twice as long.
    """

    bench: FakeBench = field(default_factory=bench)
    dearest: str = "little"
    asked: list[Deployment] = field(default_factory=list)
    fails: str = ""

    def __call__(self, deployment: Deployment, requests: int) -> History:
        self.asked.append(deployment)
        if self.fails:
            raise ExecutionError(self.fails)
        events: list[Interval] = []
        free_ns: Counter[str] = Counter()
        for request in range(requests):
            for index, stream in enumerate(deployment.streams):
                now_ns, before = 0, ""
                for number, chunk in enumerate(stream.chunks):
                    start_ns = max(now_ns, free_ns[chunk.unit])
                    if before not in ("", chunk.unit):
                        start_ns += HAND_OVER_NS * (2 if chunk.unit == self.dearest else 1)
                    now_ns = start_ns + self._busy_ns(chunk.unit, chunk.start, chunk.stop) + BEYOND_NS
                    free_ns[chunk.unit], before = now_ns, chunk.unit
                    events.append(
                        Interval(
                            start_ns=start_ns,
                            end_ns=now_ns,
                            stream=index,
                            request=request,
                            chunk=number,
                            unit=chunk.unit,
                        )
                    )
        return History(
            streams=deployment.streams,
            units=deployment.units,
            events=tuple(sorted(events)),
            deployment=deployment,
        )

    def _busy_ns(self, unit: str, start: int, stop: int) -> int:
        copies_us = sum(
            self.bench.per_tensor_us + self.bench.per_kilobyte_us * 4 * SIZES[boundary] / 1024
            for boundary in (start, stop)
        )
        run_us = self.bench.overhead_us + sum(self.bench.layer_us[unit][start:stop])
        return round(1000 * self.bench.slowdown * (run_us + copies_us))


def taken(world: World, **how: Any) -> Profile:
    return take(world.bench, **{"trial": world, **how})


def copies_in(profile: Profile, method: Method) -> tuple[tuple[int, ...], ...]:
    return profile.table(method).of("fake").transfer_in_us


def test_hops_are_measured_in_both_directions() -> None:
    found = taken(World())
    assert {(hop.source, hop.target) for hop in found.hops} == {("big", "little"), ("little", "big")}
    assert sum(hop.borders for hop in found.hops) >= 8
    for hop in found.hops:
        assert hop.hand_over_us == pytest.approx(140 if hop.target == "little" else 70)
        assert hop.beyond_us == pytest.approx(130, abs=15)


def test_hops_are_part_of_the_copies_at_borders_inside_of_the_network() -> None:
    world = World()
    without, found = take(world.bench), taken(world)
    for method in BOTH:
        for boundary, (row, before) in enumerate(
            zip(copies_in(found, method), copies_in(without, method), strict=True)
        ):
            more = [time_us - was_us for time_us, was_us in zip(row, before, strict=True)][:2]
            inside = 0 < boundary < LAYERS
            assert more == (pytest.approx([200, 270], abs=20) if inside else [0, 0])
        assert found.table(method).of("fake").layer_us == without.table(method).of("fake").layer_us
    assert found.checks == without.checks  # chunks by themselves are not behind a border


PLANS = {
    "once": (("big", 0, 6), ("little", 6, 12)),
    "any": (("big", 0, 3), ("little", 3, 6), ("big", 6, 9), ("little", 9, 12)),
}


def plan(passage: str, request: str = "", turns: int = 1) -> Plan:
    return Plan(
        chunks=tuple(
            Chunk(network="fake", start=start, stop=stop, unit=unit, request=request)
            for unit, start, stop in PLANS[passage]
        ),
        order=(request,) * turns if request else (),
    )


def hop_sum(passage: str) -> float:
    return {"once": 270, "any": 270 + 200 + 270}[passage]


@pytest.mark.parametrize("passage", ["once", "any"])
def test_each_hop_of_a_stream_is_predicted(passage: str) -> None:
    scores = [
        score(gapless.with_passage(profiled_problem(profile, costs="isolated"), passage), plan(passage))
        for profile in (taken(World(), platform=TWO, trial=None), taken(World(), platform=TWO))
    ]
    assert scores[1].latency_us - scores[0].latency_us == pytest.approx(hop_sum(passage), abs=30)
    to_little = {"once": 270, "any": 2 * 270}[passage]  # the busiest unit
    assert scores[1].period_us - scores[0].period_us == pytest.approx(to_little, abs=30)


@pytest.mark.parametrize(
    ("passage", "chunks"), [("once", "once"), ("any", "any"), ("ordered:big,little", "once"), ("", "once")]
)
def test_each_hop_of_a_whole_request_is_predicted(passage: str, chunks: str) -> None:
    makespans = []
    for profile in (taken(World(), platform=TWO, trial=None), taken(World(), platform=TWO)):
        problem = side_by_side([profile])
        problem = gapless.with_passage(problem, passage) if passage else problem
        turns = len(PLANS[chunks]) if passage else 1  # a workload has an order of its requests
        makespans.append(score(problem, plan(chunks, "fake", turns)).makespan_us)
    assert makespans[1] - makespans[0] == pytest.approx(hop_sum(chunks), abs=30)


def test_a_chunk_that_is_shorter_than_its_layers_does_not_pay_for_the_hand_over() -> None:
    hops = [
        HopCost(source="a", target="b", borders=1, hand_over_us=90, beyond_us=-400),
        HopCost(source="c", target="b", borders=3, hand_over_us=50, beyond_us=100),
        HopCost(source="b", target="a", borders=3, hand_over_us=30, beyond_us=-1),
    ]
    assert hop_us(hops, "b") == 60
    assert hop_us(hops, "a") == 30
    assert hop_us(hops, "never measured") == pytest.approx((90 + 150 + 90) / 7)
    assert hop_us((), "b") == 0


def test_one_unit_needs_no_trial() -> None:
    world = World()
    for units in (PLATFORM.units[:1], PLATFORM.units[1:2]):
        found = taken(world, platform=replace(PLATFORM, units=units))
        assert found.hops == ()
        assert "opies" not in shown(found)
    assert world.asked == []


def test_units_that_exclude_each_other_are_not_tried_together() -> None:
    world = World()
    taken(world)
    assert [set(deployment.units) for deployment in world.asked] == [{"big", "little"}]


def test_a_unit_is_left_where_it_lacks_a_layer() -> None:
    unable = {"big": [4, 7]}
    world = World(bench(unable=unable, operator_factor=None))
    assert taken(world, platform=TWO).hops
    for stream in world.asked[0].streams:
        for chunk in stream.chunks:
            assert chunk.unit == "little" or not {4, 7} & set(range(chunk.start, chunk.stop))
        assert stream.chunks[-1].stop == LAYERS


def test_a_trial_that_fails_is_no_reason_to_give_up() -> None:
    found = taken(World(fails="no memory"))
    assert found.hops == ()
    assert any("hops between big and little were not measured" in note for note in found.warnings)
    assert "predicted by their copies only" in shown(found)


def test_a_trial_is_kept_in_the_ledger() -> None:
    world, shelf = World(), Shelf()
    first = taken(world, ledger=shelf)
    again = taken(world, ledger=shelf)
    assert len(world.asked) == 1
    assert again.hops == first.hops


def test_the_usual_values_of_emulated_units_are_means() -> None:
    """A unit with a quota stands still now and then: a median would not see it."""

    def stalled(deployment: Deployment, requests: int) -> History:
        events, now_ns = [], 0
        for request in range(requests):
            for number, chunk in enumerate(deployment.streams[0].chunks):
                lasts_ns = 4_000_000 if request % 4 == 0 else 1_000_000
                events.append(
                    Interval(
                        start_ns=now_ns,
                        end_ns=now_ns + lasts_ns,
                        stream=0,
                        request=request,
                        chunk=number,
                        unit=chunk.unit,
                    )
                )
                now_ns += lasts_ns
        return History(streams=deployment.streams, units=deployment.units, events=tuple(events))

    chunks = plan("any").chunks
    deployment = Deployment(streams=(Stream(name="fake", chunks=chunks, task_slots=2),))
    costs = take(bench(), platform=TWO).table(Method.ISOLATED).of("fake")
    slow = replace(TWO, units=(TWO.units[0], replace(TWO.units[1], quota_permille=500)))
    kept = Kept(ledger=Shelf(), setting=())
    found = passed(deployment, costs, slow, stalled, kept)
    assert [one.busy_us for one in found] == pytest.approx([1000, 1750, 1000, 1750], abs=20)


def test_profiles_with_hops_come_back_from_files() -> None:
    found = taken(World())
    assert parse(dump(found, PROFILE).encode(), PROFILE, name="profile.json") == found
    assert [fit.hop_us for fit in found.fits if fit.unit == "big"] == pytest.approx([200, 200], abs=20)


def test_a_profile_of_an_earlier_version_is_loaded_and_says_so() -> None:
    data = json.loads(dump(taken(World()), PROFILE))
    del data["hops"]
    for fit in data["fits"]:
        del fit["hop_us"]
    found = parse(json.dumps(data).encode(), PROFILE, name="profile.json")
    assert found.hops == ()
    assert "Hops between units were not measured: they are predicted by their copies only." in shown(found)


def test_a_profile_says_what_a_hop_costs() -> None:
    found = taken(World(), platform=TWO)
    big, little = (hop_us(found.hops, unit) for unit in ("big", "little"))
    said = f"a hop from another unit costs, besides copies: to big {big:.1f} us, to little {little:.1f} us"
    assert said in shown(found)


def shown(profile: Profile) -> str:
    console = Console(width=200, record=True, file=StringIO())
    console.print(blocks_view(profile_blocks(profile)))
    return console.export_text()
