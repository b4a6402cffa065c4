from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import pytest

from gapless.boards.shelf import Listed, Shelf, group_digest, receive, written
from gapless.executor.tuning.store import this_process
from gapless.formulations.errors import BoardError, InvalidInputError

OLD_S = 40 * 86_400


def listed(folder: Path, name: str, content: bytes) -> Listed:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return Listed.of(name, path)


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path / "shelf")


def fill(shelf: Shelf, files: list[Listed], content: bytes) -> Path:
    with shelf.group(group_digest(files)) as place:
        for file in files:
            receive(file, place / file.name, [content])
    return shelf.root / "files" / group_digest(files)


def test_files_are_kept_by_their_names_and_contents(shelf: Shelf, tmp_path: Path) -> None:
    files = [listed(tmp_path, "net.onnx", b"abc"), listed(tmp_path, "weights/w.bin", b"abc")]
    assert not shelf.has(group_digest(files), files)
    place = fill(shelf, files, b"abc")
    assert shelf.has(group_digest(files), files)
    assert (place / "weights" / "w.bin").read_bytes() == b"abc"
    other = [listed(tmp_path, "other.onnx", b"abc"), files[1]]
    assert not shelf.has(group_digest(other), other)


def test_damaged_files_are_asked_for_again(shelf: Shelf, tmp_path: Path) -> None:
    files = [listed(tmp_path, "net.onnx", b"abc")]
    place = fill(shelf, files, b"abc")
    (place / "net.onnx").write_bytes(b"abd")
    assert not shelf.has(group_digest(files), files)
    fill(shelf, files, b"abc")
    assert shelf.has(group_digest(files), files)


@pytest.mark.parametrize("content", [b"ab", b"abcd", b"abd"])
def test_what_does_not_arrive_as_announced_is_not_kept(shelf: Shelf, tmp_path: Path, content: bytes) -> None:
    files = [listed(tmp_path, "net.onnx", b"abc")]
    with pytest.raises(BoardError, match=r"net\.onnx"):
        fill(shelf, files, content)
    assert list((shelf.root / "files").iterdir()) == []


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../up", "a/../../up", "nul\0", ".."])
def test_names_that_lead_elsewhere_are_refused(name: str) -> None:
    with pytest.raises(InvalidInputError, match="no name of a file"):
        Listed(name=name, size_bytes=0, sha256="0" * 64)


@pytest.mark.parametrize(("size", "digest"), [(-1, "0" * 64), (1, ""), (1, "0" * 63), (1, "g" * 64)])
def test_descriptions_that_make_no_sense_are_refused(size: int, digest: str) -> None:
    with pytest.raises(InvalidInputError, match="no size, or no digest"):
        Listed(name="a", size_bytes=size, sha256=digest)


@pytest.mark.parametrize("name", ["", "..", "0123456789abcdeg", "0123456789abcdef/"])
def test_a_run_has_a_name_of_digits(shelf: Shelf, name: str) -> None:
    with pytest.raises(BoardError):
        shelf.run(name)


def test_links_and_hidden_files_are_no_results(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text("{}")
    (tmp_path / ".hidden").write_text("")
    (tmp_path / "passwd").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe")
    assert [file.name for file in written(tmp_path)] == ["plan.json"]


def test_runs_that_nobody_resumes_are_forgotten(shelf: Shelf) -> None:
    names = ("0" * 16, "1" * 16)
    for name in names:
        shelf.run(name).mkdir()
    ago = time.time() - OLD_S
    os.utime(shelf.run(names[0]), (ago, ago))
    shelf.sweep()
    assert [shelf.run(name).is_dir() for name in names] == [False, True]


def test_models_make_room_for_later_ones(
    shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GAPLESS_CACHE_LIMIT_MB", "1")
    small = Shelf(shelf.root)
    contents = [bytes([number]) * 700_000 for number in range(3)]
    places = [fill(small, [listed(tmp_path, "net.onnx", each)], each) for each in contents]
    for age, place in zip((OLD_S, OLD_S // 2, 0), places, strict=True):
        os.utime(place, (time.time() - age, time.time() - age))
    small.sweep()
    assert [place.is_dir() for place in places] == [False, False, True]


HOLD = """
import sys, time
from pathlib import Path
from gapless.boards.shelf import Listed, Shelf
shelf, digest, name = Shelf(Path(sys.argv[1]), holding=True), sys.argv[2], sys.argv[3]
assert shelf.has(digest, [Listed.of("net.onnx", Path(sys.argv[4]))])
with shelf.held(name) as folder, shelf.group("b" * 32) as part:
    folder.mkdir()
    print(part, flush=True)
    time.sleep(60)
"""


@pytest.mark.slow
def test_what_is_in_use_stays_whatever_the_clock_says(
    shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GAPLESS_CACHE_LIMIT_MB", "1")
    content, name = bytes(700_000), "a" * 16
    files = [listed(tmp_path, "net.onnx", content)]
    place, idle = fill(shelf, files, content), fill(shelf, [listed(tmp_path, "other", content)], content)
    code = [sys.executable, "-c", HOLD, str(shelf.root), group_digest(files), name, str(place / "net.onnx")]
    with subprocess.Popen(code, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        part = Path(other.stdout.readline().strip())
        used = [place, part, shelf.run(name), shelf.run(name).with_suffix(".lock")]
        for path in (*used, idle):
            os.utime(path, (0, 0))  # the clock jumped: all of it is of 1970
        Shelf(shelf.root).sweep()
        assert [path.exists() for path in used] == [True] * 4
        assert not idle.exists()
        (place / "net.onnx").write_bytes(b"damaged")
        with pytest.raises(BoardError, match="another command works with it"):
            shelf.has(group_digest(files), files)
        other.kill()
    for path in used:
        os.utime(path, (0, 0))
    Shelf(shelf.root).sweep()
    assert not any(path.exists() for path in used[1:])


@pytest.mark.slow
def test_an_agent_that_hangs_is_killed_for_the_next_one(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gapless.boards.shelf._KILLED_AFTER_S", 0.5)
    name = "a" * 16
    code = (
        "import signal, time; from pathlib import Path; from gapless.boards.shelf import Shelf\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"with Shelf(Path({str(shelf.root)!r})).held({name!r}): print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        other.send_signal(signal.SIGSTOP)
        with shelf.held(name):
            assert other.wait(timeout=10) == -signal.SIGKILL


@pytest.mark.slow
def test_a_run_is_taken_over_from_a_lost_connection(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that still holds it is told to end, and waited for."""
    name = "a" * 16
    code = (
        "import sys, time; from pathlib import Path; from gapless.boards.shelf import Shelf\n"
        f"with Shelf(Path({str(shelf.root)!r})).held({name!r}): print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with shelf.held(name):
            assert other.wait(timeout=10) < 0  # by SIGTERM
            known = json.loads(shelf.run(name).with_suffix(".lock").read_text())
            assert known == asdict(this_process())
