"""Who may ask a server for what: tokens by group, names of this machine, pages of strangers in a browser."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import gapless
from gapless.executor.coordination.coordinator import Coordinator
from gapless.formulations.errors import InvalidInputError
from gapless.serving.access import Access, is_loopback
from gapless.serving.app import App
from gapless.serving.service import Service
from tests.executor.coordination.coordinators import coordinator
from tests.executor.pipeline.fakes import chain
from tests.gapless.serving.clients import Response, ask, json_body, over_socket, vector

TOKEN, ADMIN, METRICS = "a token of many letters", "another one that steers", "one more that counts"

INFER = "/v2/models/net/infer"

BROWSER = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def opened() -> Iterator[Coordinator]:
    with coordinator("a", "b") as found:
        found.register(chain(("add", 1.0), name="net"))
        yield found


@pytest.fixture(autouse=True)
def there_again(opened: Coordinator) -> Iterator[None]:
    yield
    opened.restore("a")


def withdraw(app: App, **headers: str) -> Response:
    return ask(app, "POST", "/v2/units/a/withdraw", headers=headers)


def away(opened: Coordinator) -> bool:
    return "withdrawn" in next(unit.why for unit in opened.statistics().units if unit.name == "a")


@pytest.mark.parametrize(
    ("host", "origin", "good"),
    [
        ("localhost", None, True),
        ("LocalHost.:8000", None, True),
        ("localhost:", None, True),
        ("127.0.0.1:8000", None, True),
        ("127.3.2.1.", None, True),
        ("[::1]:8000", None, True),
        ("[0:0:0:0:0:0:0:1]", None, True),
        ("board.local:8000", None, True),
        ("[fe80::2]:8000", None, True),
        ("evil.test:8000", None, False),
        ("localhost.evil.test", None, False),
        ("evil.localhost", None, False),
        ("127.0.0.1.evil.test", None, False),
        ("board.local.", None, True),
        ("board", None, False),
        ("0.0.0.0:8000", None, False),
        ("127.1", None, False),
        ("2130706433", None, False),
        ("0x7f000001", None, False),
        ("169.254.169.254", None, False),
        ("[::]", None, False),
        ("::1", None, False),
        ("[::1%lo]", None, False),
        ("[127.0.0.1]", None, False),
        ("localhost, evil.test", None, False),
        ("evil.test@localhost", None, False),
        ("localhost/evil.test", None, False),
        ("localhost..", None, False),
        ("l\u00f6calhost", None, False),
        ("", None, False),
        ("localhost:8000", "http://localhost:8000", True),
        ("localhost", "http://LOCALHOST:80", True),
        ("localhost", "https://localhost", True),
        ("[::1]:8000", "http://[0::1]:8000", True),
        ("localhost:8000", "http://localhost:3000", False),
        ("localhost:8000", "http://127.0.0.1:8000", False),
        ("localhost:8000", "http://evil.test", False),
        ("localhost:8000", "http://evil.test:8000", False),
        ("localhost:8000", "null", False),
        ("localhost:8000", "", False),
        ("localhost:8000", "file://", False),
        ("localhost:8000", "ftp://localhost:8000", False),
        ("localhost:8000", "http://localhost:8000.evil.test", False),
        ("evil.test:8000", "http://evil.test:8000", False),
    ],
)
def test_without_a_token_only_names_of_this_machine_and_no_other_page(
    opened: Coordinator, host: str, origin: str | None, good: bool
) -> None:
    app = App(Service(opened), access=Access(hosts=("Board.local.", "fe80::2")), most_bytes=10_000)
    headers = {"Host": host, **({} if origin is None else {"Origin": origin})}
    for method, path in (
        ("GET", "/v2/health/live"),
        ("GET", "/v2"),
        ("GET", "/metrics"),
        ("GET", "/nothing"),
    ):
        found = ask(app, method, path, headers=headers)
        assert (found.code not in (403, 400)) is good, path
        assert good or "Host" in found.error or "Origin" in found.error
    assert ask(app, "POST", INFER, json_body(vector(1.0)), headers=headers).code == (200 if good else 403)
    assert withdraw(app, **headers).code == (200 if good else 403)
    assert away(opened) is good


def test_a_message_without_a_name_or_with_two_is_refused() -> None:
    with coordinator("a") as own, gapless.serve(own, port=0) as server:
        port = int(server.url.rpartition(":")[2])

        def code(*lines: str) -> int:
            with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
                client.sendall("\r\n".join([*lines, "Connection: close", "", ""]).encode())
                return int(client.makefile("rb").readline().split()[1])

        steer = "POST /v2/units/a/withdraw HTTP/1."
        assert code(f"{steer}0") == 403
        assert code(f"{steer}1") == 400
        assert code(f"{steer}1", "Host: localhost", "Host: evil.test") == 400
        assert code(f"{steer}1", "Host: evil.test", "Host: localhost") == 400
        assert code(f"{steer}1", "Host: evil.test", "X-Forwarded-Host: localhost") == 403
        assert (
            code(f"{steer}1", "Host: localhost", "Origin: http://localhost", "Origin: http://a.test") == 400
        )
        assert code("POST http://evil.test/v2/units/a/withdraw HTTP/1.1", "Host: localhost") == 400
        assert code("POST http://localhost/v2/units/a/withdraw HTTP/1.1", "Host: evil.test") == 400
        assert code("OPTIONS * HTTP/1.1", "Host: localhost") == 400
        assert not away(own)
        assert code(f"{steer}0", "HOST: LOCALHOST", "Content-Length: 0") == 200
        assert away(own)


def test_tokens_open_their_own_group_only(opened: Coordinator) -> None:
    access = Access(token=TOKEN, admin_token=ADMIN, metrics_token=METRICS, public="0.0.0.0")
    app = App(Service(opened), access=access, most_bytes=10_000)
    bodies = {INFER: json_body(vector(1.0))}
    groups = {
        TOKEN: [("GET", "/v2"), ("GET", "/v2/models"), ("GET", "/v2/models/net/ready"), ("POST", INFER)],
        ADMIN: [("POST", "/v2/units/a/withdraw"), ("POST", "/v2/%75nits/a/restore")],
        METRICS: [("GET", "/metrics")],
    }
    for owner, addresses in groups.items():
        for method, path in addresses:
            for token in groups:
                shown = {"Authorization": f"bearer {token}", "Host": "evil.test", "Origin": "http://a.test"}
                found = ask(app, method, path, bodies.get(path, b""), headers=shown)
                assert found.code == (200 if token == owner else 401), (path, token)
            for said in (
                {},
                {"Authorization": owner},
                {"Authorization": "Bearer"},
                {"Authorization": f"Basic {owner}"},
            ):
                found = ask(app, method, path, bodies.get(path, b""), headers=said)
                assert (found.code, found.headers["www-authenticate"]) == (401, "Bearer")
    assert ask(app, "GET", "/v2/health/live", headers={"Host": "10.0.0.7"}).code == 200


def test_over_the_network_nobody_steers_unless_a_token_is_for_that(opened: Coordinator) -> None:
    app = App(Service(opened), access=Access(token=TOKEN, public="0.0.0.0"), most_bytes=10_000)
    good = {"Authorization": f"Bearer {TOKEN}"}
    found = withdraw(app, **good)
    assert (found.code, "--admin-token-file" in found.error) == (403, True)
    assert not away(opened)
    assert ask(app, "GET", "/metrics", headers=good).code == 200
    here = App(Service(opened), access=Access(token=TOKEN), most_bytes=10_000)
    assert withdraw(here).code == 401
    assert withdraw(here, **good).code == 200
    only = App(Service(opened), access=Access(admin_token=ADMIN), most_bytes=10_000)
    assert ask(only, "POST", INFER, json_body(vector(1.0))).code == 200
    assert withdraw(only).code == 401


@pytest.mark.parametrize(
    "given",
    [
        {"public": "0.0.0.0"},
        {"public": "0.0.0.0", "admin_token": ADMIN},
        {"token": "short"},
        {"admin_token": "short"},
        {"metrics_token": "not ascii, but long \u00e4"},
        {"token": " a token of many letters"},
        {"hosts": ("*",)},
        {"hosts": ("board:8000",)},
        {"hosts": ("http://board",)},
        {"hosts": ("[fe80::2]:80",)},
        {"hosts": ("",)},
    ],
)
def test_access_that_guards_nothing_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(InvalidInputError, match=r"token|--allow-host"):
        Access(**given)  # type: ignore[arg-type]


def test_tokens_are_not_printed() -> None:
    assert TOKEN not in repr(Access(token=TOKEN))
    assert [
        host
        for host in ("127.0.0.1", "127.1.2.3", "::1", "localhost", "", "::", "0", "10.0.0.1")
        if is_loopback(host)
    ] == [
        "127.0.0.1",
        "127.1.2.3",
        "::1",
        "localhost",
    ]


class _Page(BaseHTTPRequestHandler):
    """A page of another server, at any address."""

    def __init__(self, page: str, *words: object) -> None:
        self._page = page
        super().__init__(*words)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(self._page.encode())

    def log_message(self, *_: object) -> None:
        pass


def browse(page: str, profile: Path, *, host: str = "127.0.0.1", at: int | None = None) -> str:
    """Open a page of a stranger, or the one at a port under a name that is mapped to this machine."""
    assert BROWSER is not None
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Page, page)) as stranger:
        threading.Thread(target=stranger.serve_forever, daemon=True).start()
        port = stranger.server_address[1] if at is None else at
        done = subprocess.run(
            [
                BROWSER,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                f"--user-data-dir={profile}",
                "--host-resolver-rules=MAP evil.test 127.0.0.1",
                "--virtual-time-budget=3000",
                "--dump-dom",
                f"http://{host}:{port}/v2/models",
            ],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        stranger.shutdown()
    return done.stdout


FETCH = """<body><script>
fetch("http://127.0.0.1:PORT/v2/units/a/withdraw", {method: "POST", mode: "no-cors", body: "x"})
    .then(() => document.body.append("arrived"), () => document.body.append("refused"));
</script></body>"""

FORM = """<body><form method="post" enctype="text/plain" action="http://127.0.0.1:PORT/v2/units/a/withdraw">
<input name="x" value="y"></form><script>document.forms[0].submit();</script></body>"""

HIDDEN = FORM.replace("<form", '<meta name="referrer" content="no-referrer"><form')


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="needs chromium or google-chrome on the PATH")
@pytest.mark.parametrize("page", [FETCH, FORM, HIDDEN])
def test_a_page_in_a_browser_cannot_steer_the_server(tmp_path: Path, page: str) -> None:
    with coordinator("a", "b") as own, gapless.serve(own, port=0) as server:
        port = int(server.url.rpartition(":")[2])
        found = browse(page.replace("PORT", str(port)), tmp_path / "profile")
        assert "arrived" in found or "Origin" in found  # the request was sent, and refused here
        assert not away(own)
        assert over_socket(port, "POST", "/v2/units/a/withdraw").code == 200
        assert away(own)


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="needs chromium or google-chrome on the PATH")
def test_a_name_that_is_rebound_to_this_machine_reads_nothing(tmp_path: Path) -> None:
    with coordinator("a") as own:
        own.register(chain(("add", 1.0), name="net"))
        with gapless.serve(own, port=0) as server:
            port = int(server.url.rpartition(":")[2])
            found = browse("", tmp_path / "profile", host="evil.test", at=port)
            assert '"net"' not in found.replace("&quot;", '"')
            assert "evil.test" in found
            assert '"net"' in browse("", tmp_path / "other", at=port).replace("&quot;", '"')
