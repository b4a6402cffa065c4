"""The split of rows of a group against brute force over all splits and leaders."""

from __future__ import annotations

from benchmarks.group_splits import loss


def test_with_like_links_no_split_is_better() -> None:
    losses = [loss(seed) for seed in range(200)]
    assert sum(each is not None for each in losses) > 150
    assert {each for each in losses if each is not None} == {0}


def test_with_unlike_links_it_is_a_rule() -> None:
    losses = [each for seed in range(100) if (each := loss(seed, alike=False)) is not None]
    assert len(losses) > 75
    assert 0 < sum(each > 0 for each in losses) < len(losses) / 5
