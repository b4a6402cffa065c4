"""Local nodes as they are asked for."""

from __future__ import annotations

import fcntl
import os
import tempfile
from pathlib import Path

import pytest

from gapless.executor.cluster import nodes
from gapless.executor.cluster.nodes import LocalNode, parse_local_nodes
from gapless.formulations.errors import InvalidInputError


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "usable_cores", lambda: (0, 1))


def test_a_number_of_nodes_shares_cores_evenly() -> None:
    assert parse_local_nodes("3") == (
        LocalNode(name="node0", cores=(0,), quota_permille=500),
        LocalNode(name="node1", cores=(1,)),
        LocalNode(name="node2", cores=(0,), quota_permille=500),
    )
    assert [node.quota_permille for node in parse_local_nodes("2")] == [None, None]
    assert [node.quota_permille for node in parse_local_nodes("6")] == [333] * 6


def test_folders_of_the_killed_go_and_those_in_use_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left, used, other = (tmp_path / name for name in ("gl-left", "gl-used", "other"))
    for folder in (left, used, other):
        (folder / "r").mkdir(parents=True)
    (tmp_path / "gl-link").symlink_to(other)
    held = os.open(used, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_SH)
    nodes.sweep()
    assert [folder.exists() for folder in (left, used, other)] == [False, True, True]
    os.close(held)
    nodes.sweep()
    assert not used.exists()


def test_nodes_are_described_one_by_one() -> None:
    assert parse_local_nodes(
        "a=core0:50%@20MB/s+500us, b=cores0-1, c=core1:12.5%@100Mbit/s, d=core1+2ms"
    ) == (
        LocalNode(name="a", cores=(0,), quota_permille=500, bytes_per_second=20_000_000, latency_us=500),
        LocalNode(name="b", cores=(0, 1)),
        LocalNode(name="c", cores=(1,), quota_permille=125, bytes_per_second=12_500_000),
        LocalNode(name="d", cores=(1,), latency_us=2000),
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0", "there are 0, must be 1 to"),
        ("99", "there are 99, must be 1 to"),
        ("a=core7", "node 'a' needs the cores 7, only 0-1 may be used"),
        ("a=core0,a=core1", "2 nodes are called 'a'"),
        ("a", "local node 'a' cannot be read: expected a number of nodes, or NAME=CORES"),
        ("a=core0:120%", "quota_permille is 1200, must be between 1 and 1000"),
        ("a=core0:0%", "quota_permille is 0, must be between 1 and 1000"),
        ("a=core0@0MB/s", "bytes_per_second"),
        ("a=core0@fast", "cannot be read"),
        ("", "cannot be read"),
        ("-1", "cannot be read"),
    ],
)
def test_what_cannot_be_made_is_refused(text: str, words: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        parse_local_nodes(text)
    assert words in str(refused.value)
