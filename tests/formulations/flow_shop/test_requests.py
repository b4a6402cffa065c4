"""Requests as users write them."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.formulations.errors import InvalidInputError
from gapless.formulations.workload import MOST_BATCH, MOST_REQUESTS, requests_of, split_batch

KNOWN = ("bert", "mobilenetv2", "yolo", "vgg16", "netx2", "light*4", "mix")


@pytest.mark.parametrize(
    ("text", "networks", "names"),
    [
        ("bert", ["bert"], ["bert"]),
        (" vgg16 , bert ", ["vgg16", "bert"], ["vgg16", "bert"]),
        (
            "yolo,bert,mobilenetv2x3",
            ["yolo", "bert", *["mobilenetv2"] * 3],
            ["yolo", "bert", "mobilenetv2#1", "mobilenetv2#2", "mobilenetv2#3"],
        ),
        ("bert,yolo,bert", ["bert", "yolo", "bert"], ["bert#1", "yolo", "bert#2"]),
        ("vgg16x1", ["vgg16"], ["vgg16"]),
        ("netx2", ["netx2"], ["netx2"]),  # the name of a network, not two of "net"
        ("netx2x2", ["netx2"] * 2, ["netx2#1", "netx2#2"]),
        ("mixx2", ["mix"] * 2, ["mix#1", "mix#2"]),
        ("light*4x2", ["light*4"] * 2, ["light*4#1", "light*4#2"]),  # a network of this name is there
        ("mobilenetv2*4", ["mobilenetv2*4"], ["mobilenetv2*4"]),
        ("mobilenetv2*1,mobilenetv2", ["mobilenetv2"] * 2, ["mobilenetv2#1", "mobilenetv2#2"]),
        ("mobilenetv2*08x2", ["mobilenetv2*8"] * 2, ["mobilenetv2*8#1", "mobilenetv2*8#2"]),
        ("netx2*3x2", ["netx2*3"] * 2, ["netx2*3#1", "netx2*3#2"]),
    ],
)
def test_texts_are_read(text: str, networks: list[str], names: list[str]) -> None:
    requests = requests_of(text, KNOWN, batches=True)
    assert [request.network for request in requests] == networks
    assert [request.name for request in requests] == names
    assert all(request.arrival_us == 0 and request.deadline_us is None for request in requests)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "entry 1: it is empty"),
        ("bert,,yolo,", "entry 2: it is empty"),
        ("bert,yollo", "entry 2: no network is called 'yollo'; did you mean yolo?"),
        ("Bert*4x3", "'Bert'; did you mean bert?"),
        ("resnet50", "choose one of bert, light"),
        ("bertx0", "a number of requests of 0 is asked for; from 1 to 10000"),
        ("bert*0", "a batch of 0 is asked for; from 1 to 1000"),
        (f"bert*{MOST_BATCH + 1}", "a batch of 1001"),
        ("bertx" + "9" * 5000, "from 1 to 10000"),
        (f"bertx{MOST_REQUESTS},yolo", "more than 10000 requests"),
        ("bert x3", "no network is called 'bert '"),
        ("bertx-1", "no network is called 'bertx-1'"),
        ("bertx²", "no network is called 'bertx²'"),
        ("x3", "no network is called 'x3'"),
    ],
)
def test_mistakes_are_named(text: str, words: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        requests_of(text, KNOWN, batches=True)
    assert words in str(caught.value)


def test_every_mistake_is_named_at_once() -> None:
    with pytest.raises(InvalidInputError) as caught:
        requests_of("foo,bert,bar", KNOWN)
    assert len(caught.value.problems) == 2


def test_a_batch_without_costs_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="'bert\\*4' is a batch, and its costs are not known"):
        requests_of("bert*4x2", KNOWN)
    assert requests_of("light*4", KNOWN)[0].network == "light*4"


def test_batches_are_split_from_their_networks() -> None:
    assert split_batch("mobilenetv2*4") == ("mobilenetv2", 4)
    assert split_batch("vgg16") == ("vgg16", 1)


@given(st.lists(st.tuples(st.sampled_from(KNOWN), st.integers(1, 9), st.integers(1, 4)), min_size=1))
def test_what_is_written_comes_back(entries: list[tuple[str, int, int]]) -> None:
    text = ",".join(f"{name}*{size}x{many}" for name, size, many in entries)
    requests = requests_of(text, KNOWN, batches=True)
    assert len({request.name for request in requests}) == len(requests)
    wanted = [(name, size) for name, size, many in entries for _ in range(many)]
    found = [
        (request.network, 1) if request.network in KNOWN else split_batch(request.network)
        for request in requests
    ]
    assert found == wanted


@given(st.text(alphabet="bert*x0123456789, é", max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    requests = []
    with contextlib.suppress(InvalidInputError):
        requests = [request.network for request in requests_of(text, KNOWN, batches=True)]
    assert all(name in KNOWN or split_batch(name)[0] in KNOWN for name in requests)
