from __future__ import annotations

import json

import pytest

from gapless.boards.folder import Translation, harmless

GROUP = "files/0123456789abcdef0123456789abcdef"
THERE = Translation("/root/boards", {f"{GROUP}/net.onnx": "models/net.onnx", "runs/00ff": 'my "out"'})


def test_people_read_the_paths_that_they_wrote() -> None:
    assert THERE.text(f"wrote runs/00ff/plan.json of {GROUP}/net.onnx") == (
        'wrote my "out"/plan.json of models/net.onnx'
    )


def test_files_hold_whole_paths_of_this_machine() -> None:
    translation = Translation("/root/boards", {f"{GROUP}/é.onnx": '/here/"é".onnx'})
    for ascii_only in (True, False):
        text = json.dumps({"locator": f"/root/boards/{GROUP}/é.onnx"}, ensure_ascii=ascii_only)
        assert json.loads(translation.file(text)) == {"locator": '/here/"é".onnx'}


def test_trees_are_translated_below_their_keys() -> None:
    tree = {"path": f"{GROUP}/net.onnx", "rows": [1, None, f"in {GROUP}/net.onnx:P"]}
    assert THERE.tree(tree) == {"path": "models/net.onnx", "rows": [1, None, "in models/net.onnx:P"]}


@pytest.mark.parametrize(
    "hostile", ["\x1b]52;c;cm0gLXJm\x07", "\x1b[6n", "\x1bc", "\x9b31m", "\x1b[?1049h", "\x00", "\x08"]
)
def test_a_board_cannot_steer_the_terminal(hostile: str) -> None:
    shown = THERE.text(f"before{hostile}after")
    assert shown.startswith("before")
    assert shown.endswith("after")
    assert shown.isprintable()
    assert shown == harmless(shown)


def test_a_large_answer_finds_its_paths_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Translation] = []
    pairs = Translation._pairs

    def counted(self: Translation) -> list[tuple[str, str]]:
        asked.append(self)
        return pairs(self)

    monkeypatch.setattr(Translation, "_pairs", counted)
    assert THERE.tree([{"path": f"{GROUP}/net.onnx"}] * 1000) == [{"path": "models/net.onnx"}] * 1000
    assert len(asked) == 1  # each asks for the current folder and sorts
