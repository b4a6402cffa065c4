"""Messages and files between gapless here and a board, whatever the pipe cuts them into."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.boards import channel
from gapless.boards.channel import Channel, Content, Ended, Line, Message, Need, Ready, Refused, Want
from gapless.boards.shelf import Listed
from gapless.formulations.errors import InvalidInputError

READY = Ready(protocol=channel.PROTOCOL, gapless="1", root="/srv/board")


class Lost(Exception):
    pass


class End(Channel):
    """One end, whose errors say which they are."""

    def lost(self) -> BaseException:
        return Lost("lost")

    def hung(self) -> BaseException:
        return Lost("hung")

    def wrong(self, why: str) -> BaseException:
        return Lost(f"wrong: {why}")

    def refused(self, message: str) -> BaseException:
        return Lost(f"refused: {message}")


def hearing(*pieces: bytes) -> End:
    """Return an end that hears some bytes, and then no more."""
    source, target = os.pipe()

    def write() -> None:
        for piece in pieces:
            os.write(target, piece)
        os.close(target)

    threading.Thread(target=write, daemon=True).start()
    return End(source, os.open(os.devnull, os.O_WRONLY))


@given(st.lists(st.text(max_size=50)), st.binary(max_size=300), st.integers(1, 50))
def test_messages_and_files_survive_being_cut_anywhere(texts: list[str], content: bytes, step: int) -> None:
    told: list[Message] = [Line(text=text) for text in texts]
    told_before = b"".join(b"\n" + channel.encoded(one) for one in [*told, Content()])
    whole = channel.greeted(READY) + told_before + content
    end = hearing(*(whole[at : at + step] for at in range(0, len(whole), step)))
    assert end.ready() == READY
    assert [end.next() for _ in told] == told
    assert b"".join(end.content(len(content))) == content
    with pytest.raises(Lost, match="lost"):
        end.next()


@pytest.mark.parametrize(
    ("heard", "why"),
    [
        (b"Welcome to the board!\n", "is not valid JSON"),
        (b"[]\n", "holds a list"),
        (b"\xff\n", "not a text file"),
        (b"[" * 100_000 + b"\n", "nested too deeply"),
        (b"{}\n", "a message that is none"),
        (b'{"is": "Message"}\n', "a message that is none"),
        (b'{"is": "Need"}\n', "Need is not valid"),
        (b'{"is": "Ended", "code": 256, "files": []}\n', "an exit code from 0 to 255"),
        (b'{"is": "Ended", "code": true, "files": []}\n', "code"),
        (b'{"is": "Need", "groups": ["0"], "seed": false}\n', "groups"),
        (b"x" * (channel.MAX_MESSAGE_BYTES + 1), "without an end"),
        (channel.encoded(Refused(message="no")), "refused: no"),
    ],
)
def test_what_is_no_message_is_an_error_of_the_other_side(heard: bytes, why: str) -> None:
    end = hearing(heard)
    with pytest.raises(Lost, match=why):
        end.next()


def test_another_message_than_expected_is_refused() -> None:
    end = hearing(channel.encoded(Want()))
    with pytest.raises(Lost, match="Want where Need was expected"):
        end.told(Need)


def test_a_message_that_is_too_long_is_not_sent() -> None:
    with pytest.raises(InvalidInputError, match="do not fit"):
        channel.encoded(Line(text="x" * channel.MAX_MESSAGE_BYTES))


def test_a_file_that_changes_while_it_is_sent_is_no_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    listed = Listed.of("a", path)
    path.write_bytes(b"ab")
    with pytest.raises(InvalidInputError, match="changed while it was sent"):
        hearing().give(listed, path)


def test_a_later_version_may_say_more() -> None:
    line = channel.encoded(Ended(code=0, files=())).replace(b"}", b', "seconds": 1}')
    assert hearing(line).told(Ended) == Ended(code=0, files=())


def test_signs_of_life_before_a_file_are_not_of_it(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"\nabc")
    source, target = os.pipe()
    giver = End(os.open(os.devnull, os.O_RDONLY), target)
    giver._said_s -= 2 * channel.ALIVE_EVERY_S
    giver.alive()  # as after a while in which the other side checked what it has
    giver.give(Listed.of("a", path), path)
    assert b"".join(End(source, os.open(os.devnull, os.O_WRONLY)).content(4)) == b"\nabc"


def test_a_side_that_listens_no_more_is_not_heard_without_end() -> None:
    said = [b"x" * channel.MAX_MESSAGE_BYTES] * 8
    end = hearing(*said)
    closed, end._target = os.pipe()
    os.set_blocking(end._target, False)
    os.close(closed)
    with pytest.raises(Lost, match="without an end"):
        end.say(Want())
    assert len(end._came) < 2 * channel.MAX_MESSAGE_BYTES
