"""What a device does while links are measured: it sends messages of given sizes, and says when others came.

It has an endpoint and links of its own for this, of the kind that requests travel over (`executor.cluster`):
what is measured is what they will meet. Orders come from the driver the same way; so do the answers.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from ...executor.cluster.device import DRIVER
from ...executor.cluster.endpoint import Address, Endpoint, Frame, LinkRate, Outlet

BACKGROUND = -1
"""Number of messages that are not measured."""

_HEARTBEAT_S = 2.0


def serve(settings: str, _: Callable[[str], bytes]) -> str:
    """Take part until the driver says that it is over.

    `settings`: JSON: name and host of this device, the rate of what it sends, the driver's address, and the
    key.
    """
    prober = Prober(json.loads(settings))
    try:
        prober.begin()
        while not prober.over.wait(_HEARTBEAT_S):
            prober.tell({"kind": "alive"})  # fails when the driver is gone
    finally:
        prober.close()
    return "{}"


class Prober:
    """One device among those whose links are measured."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.over = threading.Event()  # set when the driver says so, or is gone
        self._name: str = given["name"]
        self._key = bytes.fromhex(given["key"])
        self._rate = LinkRate(**given["rate"])
        self._addresses: dict[str, Address] = {DRIVER: (given["driver"][0], given["driver"][1])}
        self._outlets: dict[str, Outlet] = {}
        self._on_the_way: Counter[str] = Counter()
        self._waited_us: dict[str, float] = {}
        self._background: dict[str, int] = {}
        self._lock = threading.RLock()
        self._endpoint = Endpoint(self._name, given["host"], self._key, self._handle)

    def begin(self) -> None:
        """Tell the driver where this device listens."""
        self.tell({"kind": "here", "address": list(self._endpoint.address)})

    def tell(self, head: Mapping[str, Any]) -> None:
        """Send word to the driver."""
        self._outlet(DRIVER).post(head)

    def close(self) -> None:
        """Send and take nothing more."""
        for outlet in self._outlets.values():
            outlet.close()
        self._endpoint.close()

    def _handle(self, frame: Frame) -> None:
        head = frame.head
        match head["kind"]:
            case "meet":
                self._addresses |= {name: (at[0], at[1]) for name, at in head["addresses"].items()}
            case "send":
                self._send(head["target"], head["size"], number=head["number"])
            case "load":
                self._keep_busy(head["target"], head["size"])
            case "message":
                self._arrived(frame)
            case "got":
                self._got(frame)
            case "over":
                self.over.set()

    def _send(self, target: str, size: int, *, number: int) -> None:
        """Send a message; its head says what is known of the link now. Background has the number -1."""
        import numpy as np

        with self._lock:
            known = {"queue_us": self._waited_us.get(target, 0.0), "traffic": self._on_the_way[target]}
            self._on_the_way[target] += size
        self._outlet(target).post(
            {"kind": "message", "number": number, **known}, {"bytes": np.zeros(size, np.uint8)}
        )

    def _keep_busy(self, target: str, size: int) -> None:
        """Keep one background message of a size on the way to a device, the next when one came; 0: none."""
        with self._lock:
            runs = self._background.get(target, 0) > 0
            self._background[target] = size
        if size and not runs:
            self._send(target, size, number=BACKGROUND)

    def _arrived(self, frame: Frame) -> None:
        head = frame.head
        number, began_ns = head["number"], head["queued_ns"]
        receipt = {"number": number, "size": frame.size, "began_ns": began_ns}
        waited_us = (frame.sent_ns - began_ns) / 1000
        self._outlet(frame.sender).post({"kind": "got", "waited_us": waited_us, **receipt})
        if number >= 0:
            known = {"queue_us": head["queue_us"], "traffic_bytes": head["traffic"]}
            self.tell({"kind": "arrived", "arrived_ns": frame.arrived_ns, **known, **receipt})

    def _got(self, frame: Frame) -> None:
        head, target = frame.head, frame.sender
        with self._lock:
            self._on_the_way[target] -= head["size"]
            self._waited_us[target] = head["waited_us"]
            size = self._background.get(target, 0)
        if head["number"] >= 0:
            trip_ns = frame.arrived_ns - head["began_ns"]
            self.tell({"kind": "returned", "number": head["number"], "trip_ns": trip_ns})
        elif size:
            self._send(target, size, number=BACKGROUND)

    def _outlet(self, target: str) -> Outlet:
        with self._lock:
            if target not in self._outlets:
                rate = LinkRate() if target == DRIVER else self._rate
                self._outlets[target] = Outlet(
                    self._name, target, self._addresses[target], self._key, rate=rate, failed=self._failed
                )
            return self._outlets[target]

    def _failed(self, target: str, words: str) -> None:
        if target == DRIVER:
            self.over.set()
        else:
            self.tell({"kind": "cut", "target": target, "words": words})
