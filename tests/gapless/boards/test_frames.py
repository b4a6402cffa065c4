from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.boards import frames


@given(st.lists(st.binary(max_size=300)), st.integers(1, 50))
def test_frames_survive_being_cut_anywhere(payloads: list[bytes], step: int) -> None:
    sent = b"".join(frames.frame(frames.DATA, payload) for payload in payloads)
    reader = frames.Frames()
    found = [each for start in range(0, len(sent), step) for each in reader.feed(sent[start : start + step])]
    assert found == [(frames.DATA, payload) for payload in payloads]


def test_what_is_no_frame_is_refused() -> None:
    with pytest.raises(frames.ProtocolError):
        list(frames.Frames().feed(b"Welcome to the board!"))
    with pytest.raises(frames.ProtocolError):
        frames.frame(frames.DATA, b"x" * (frames.MAX_PAYLOAD_BYTES + 1))


@pytest.mark.parametrize("payload", [b"", b"[]", b"{", b"\xff", b"[" * 100_000])
def test_a_message_is_a_json_object(payload: bytes) -> None:
    with pytest.raises(frames.ProtocolError):
        frames.content_of(payload)
