"""The server at work: over a port and a Unix socket, with a token, and how it stops."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from io import StringIO
from pathlib import Path
from time import sleep
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import gapless
from gapless.answers.scenarios import served_blocks
from gapless.cli.main import main
from gapless.cli.tasks import serving as tasks
from gapless.cli.tasks.serving import parse_cannot, parse_workers, serve_until, subject
from gapless.executor.coordination.coordinator import Coordinator
from gapless.formulations.costs import CostTable, NetworkCosts
from gapless.formulations.deployment import Deployment
from gapless.formulations.errors import ExecutionError, InvalidInputError
from gapless.formulations.operation import operation_of
from gapless.question.service import Service
from gapless.question.subjects import Opening
from gapless.serving.access import read_token
from gapless.serving.server import Server
from gapless.view.terminal.blocks import blocks_view
from tests.coming_back import plan_file
from tests.executor.coordination.coordinators import coordinator
from tests.executor.pipeline.fakes import FakeEngine, FakeModel, chain, platform
from tests.gapless.serving.clients import binary_body, json_body, over_socket, vector
from tests.processes import soon, workers

pytest.importorskip("httptools")

INFER = "/v2/models/net/infer"
TOKEN = "0123456789abcdef"


@pytest.fixture
def opened() -> Iterator[Coordinator]:
    with coordinator("a", "b") as found:
        found.register(chain(("add", 1.0), ("sleep", 0.01), name="net"))
        yield found


def port_of(server: Server) -> int:
    return int(server.url.rpartition(":")[2])


@pytest.mark.slow
def test_clients_over_a_port(opened: Coordinator) -> None:
    with gapless.serve(opened, port=0) as server:
        port = port_of(server)
        assert over_socket(port, "GET", "/v2/health/ready").document["ready"] is True
        assert (
            over_socket(port, "POST", INFER, json_body(vector(1.0))).document["outputs"][0]["data"][0] == 2.0
        )
        body, headers = binary_body(vector(2.0), parameters={"binary_data_output": True})
        found = over_socket(port, "POST", INFER, body, headers)
        assert np.array_equal(np.frombuffer(found.blobs, np.float32), vector(3.0))
        assert over_socket(port, "GET", "/v2", headers={"X": "x" * 20_000}).code == 431
        with ThreadPoolExecutor(4) as pool:
            ask = pool.map(
                lambda value: over_socket(port, "POST", INFER, json_body(vector(value))), range(20)
            )
            assert [reply.document["outputs"][0]["data"][0] for reply in ask] == list(range(1, 21))
        with pytest.raises(ExecutionError, match=r"cannot listen on 127.0.0.1"):
            Server(opened, port=port)
    assert not server.alive
    with pytest.raises(ConnectionError):
        over_socket(port, "GET", "/v2/health/live")


def test_the_address_is_taken_before_models_are_opened(tmp_path: Path) -> None:
    def never() -> Coordinator:
        raise AssertionError("models are opened")

    with socket.create_server(("127.0.0.1", 0)) as other:
        with pytest.raises(ExecutionError, match=r"cannot listen on .*: Address already in use; choose"):
            Server(never, port=other.getsockname()[1])
        with pytest.raises(ExecutionError, match="cannot listen on"):
            gapless.serve(["no such model"], port=other.getsockname()[1])
    (tmp_path / "file").touch()
    for path in (tmp_path / "nowhere" / "s", tmp_path / "file"):
        with pytest.raises(ExecutionError, match="cannot listen on"):
            Server(never, path=path)
    assert (tmp_path / "file").exists()


def test_health_tells_starting_from_broken(tmp_path: Path) -> None:
    told = dict[str, tuple[int, Any]]()

    def opens() -> Coordinator:
        for path in ("/v2/health/live", "/v2/health/ready", "/v2", "/v2/models", "/v2/models/net/ready"):
            found = over_socket(port, "GET", path)
            told[path] = found.code, found.document
        with pytest.raises(ExecutionError, match="cannot listen on"):
            Server(opens, path=tmp_path / "s")  # the other one has it already
        raise InvalidInputError("no such model")

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(InvalidInputError, match="no such model"):
        Server(partial(Server, opens, path=tmp_path / "s"), port=port)  # type: ignore[arg-type]
    assert told["/v2/health/live"] == (200, {"live": True, "state": "starting"})
    assert told["/v2/health/ready"] == (503, {"ready": False, "state": "starting"})
    assert told["/v2"][0] == 200
    for path in ("/v2/models", "/v2/models/net/ready"):
        assert told[path][0] == 503
        assert "the server is starting" in told[path][1]["error"]
    assert not (tmp_path / "s").exists()
    with pytest.raises(ConnectionError):
        over_socket(port, "GET", "/v2/health/live")
    Server(coordinator("a"), port=port).close()  # it has been given back


@pytest.mark.slow
def test_the_seconds_of_serving_are_those_that_were_asked_for(
    opened: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening before it and closing after it are no time of `--seconds`."""
    now = [100.0]

    @contextmanager
    def waits() -> Iterator[Callable[[float | None], bool]]:
        def stop(seconds: float | None) -> bool:
            now[0] += seconds or 0.0
            return False

        now[0] += 30.0  # whatever has to be prepared
        yield stop

    class SlowToClose(Server):
        def close(self, **more: float) -> tuple[str, ...]:
            now[0] += 7.0
            return super().close(**more)

    monkeypatch.setattr("gapless.cli.tasks.serving._stopped_by_signals", waits)
    monkeypatch.setattr("gapless.cli.tasks.serving.time", SimpleNamespace(monotonic=lambda: now[0]))
    found, _ = serve_until(SlowToClose(opened, port=0), Service(seconds=5.0), trace=None)
    assert found.seconds == 5.0
    printed = Console(file=StringIO())
    printed.print(blocks_view(served_blocks(found)))
    assert isinstance(printed.file, StringIO)
    assert " in 5 s; " in printed.file.getvalue()


@pytest.mark.slow
def test_clients_over_a_unix_socket(opened: Coordinator, tmp_path: Path) -> None:
    path = tmp_path / "gapless.sock"
    with socket.socket(socket.AF_UNIX) as abandoned:
        abandoned.bind(str(path))
    with gapless.serve(opened, path=path) as server:
        assert server.url == f"unix:{path}"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert over_socket(str(path), "POST", INFER, json_body(vector(1.0))).code == 200
        with pytest.raises(ExecutionError, match=r"cannot listen on .*gapless\.sock"):
            Server(opened, path=path)
    assert not path.exists()


@pytest.mark.slow
def test_others_need_a_token(opened: Coordinator, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"0\.0\.0\.0 can be reached by others: give a token"):
        gapless.serve(opened, host="0.0.0.0", port=0)
    with pytest.raises(InvalidInputError, match="every address can be reached by others"):
        gapless.serve(opened, host="", port=0)
    with pytest.raises(InvalidInputError, match="the token has 5 characters"):
        gapless.serve(opened, token="short", port=0)
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    file.chmod(0o644)
    with pytest.raises(InvalidInputError, match="can be read by others: chmod 600"):
        read_token(file)
    file.chmod(0o600)
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff" * 32)
    binary.chmod(0o600)
    with pytest.raises(InvalidInputError, match="binary is no ASCII text: `openssl rand"):
        read_token(binary)
    with pytest.raises(InvalidInputError, match=r"cannot read the token in .*: No such file or directory"):
        read_token(tmp_path / "nowhere")
    with pytest.raises(InvalidInputError, match=r"cannot read the token in .*: Is a directory"):
        read_token(tmp_path)  # not: chmod 600 of a folder
    with gapless.serve(opened, host="0.0.0.0", port=0, token=read_token(file)) as server:
        port = port_of(server)
        assert over_socket(port, "POST", INFER, json_body(vector(1.0))).code == 401
        good = {"Authorization": f"Bearer {TOKEN}"}
        assert over_socket(port, "POST", INFER, json_body(vector(1.0)), good).code == 200


@pytest.mark.slow
def test_what_was_accepted_is_answered_before_it_stops() -> None:
    with coordinator("a") as opened:
        opened.register(chain(("sleep", 0.05), name="net"))
        server = gapless.serve(opened, port=0)
        port = port_of(server)
        codes: list[int] = []

        def ask() -> None:
            codes.append(over_socket(port, "POST", INFER, json_body(vector(1.0))).code)

        asking = [threading.Thread(target=ask) for _ in range(4)]
        for thread in asking:
            thread.start()
        assert soon(lambda: opened.statistics().waiting + len(codes) >= 4), "all of them are accepted"
        assert server.close() == ()
        assert server.close() == ()
        for thread in asking:
            thread.join()
        assert codes == [200] * 4


@pytest.mark.slow
def test_models_plans_and_options_of_python() -> None:
    model: FakeModel = chain(("add", 1.0), ("scale", 2.0), name="net")
    with gapless.serve(
        [model],
        platform=platform("a", "b"),
        engine=FakeEngine(),
        deadlines_us={"net": 10**6},
        split=2,
        port=0,
    ) as server:
        held = server.coordinator.registered["net"]
        assert (held.deadline_us, len(held.held.sections)) == (10**6, 2)
        assert over_socket(port_of(server), "POST", INFER, json_body(vector(1.0))).code == 200
        with pytest.raises(InvalidInputError, match="is open already: split come too late"):
            gapless.serve(server.coordinator, split=2)
    with pytest.raises(InvalidInputError, match="a deadline is given for 'nett'"):
        gapless.coordination.open_coordinator(
            [model], platform=platform("a"), engine=FakeEngine(), deadlines_us={"nett": 1}
        )


def planned_net() -> tuple[FakeModel, gapless.Problem, Deployment]:
    """Return a model of three layers, and a plan that no policy would make: first "b", then "a"."""
    model = chain(("add", 1.0), ("scale", 2.0), ("add", 1.0), name="net")
    costs = NetworkCosts(network="net", layer_us=((1, 9), (1, 9), (1, 9)))
    problem = gapless.Problem(
        platform=platform("a", "b"),
        networks=(model.network,),
        costs=CostTable(units=("a", "b"), networks=(costs,)),
    )
    chunks = [gapless.Chunk(network="net", start=a, stop=b, unit=u) for a, b, u in ((0, 2, "b"), (2, 3, "a"))]
    return model, problem, operation_of(problem).deploy(problem, gapless.Plan(chunks=tuple(chunks)))


@pytest.mark.slow
def test_a_plan_is_served_as_it_is() -> None:
    (model, problem, plan), engine = planned_net(), FakeEngine()
    with gapless.coordination.open_coordinator(
        [model], problem=problem, plan=plan, engine=engine
    ) as coordinator:
        for _ in range(3):
            served = coordinator.run("net", {"x": vector(1.0)})
            assert [(c.start, c.stop, c.unit) for c in served.chunks] == [(0, 2, "b"), (2, 3, "a")]
            assert served.outputs["t2"][0] == 5.0
    other = platform("a", "c")
    with pytest.raises(InvalidInputError, match="the costs are for the units a, b, but a, c serve"):
        gapless.coordination.open_coordinator([model], problem=problem, platform=other, engine=engine)


@pytest.mark.slow
def test_a_plan_that_adapts_is_left_with_its_unit_and_taken_again() -> None:
    (model, problem, plan), engine = planned_net(), FakeEngine()
    with gapless.coordination.open_coordinator(
        [model], problem=problem, plan=plan, policy="adaptive", smoothing=0.0, engine=engine
    ) as coordinator:

        def units_of(count: int) -> set[tuple[str, ...]]:
            answers = [coordinator.run("net", {"x": vector(1.0)}) for _ in range(count)]
            assert all(served.outputs["t2"][0] == 5.0 for served in answers)
            return {tuple(chunk.unit for chunk in served.chunks) for served in answers}

        assert units_of(3) == {("b", "a")}
        coordinator.withdraw("b")
        assert units_of(3) == {("a",)}
        coordinator.restore("b")
        patience = iter(range(1_000))
        while units_of(1) != {("b", "a")}:  # the unit is probed first
            next(patience)
            sleep(0.01)


def test_words_of_the_command_line(tmp_path: Path) -> None:
    deadlines = Service.of_texts({"deadline_us": "net=20ms other=500us"}).deadline_us
    assert deadlines == {"net": 20_000, "other": 500}
    assert parse_cannot(["a=Softplus, Conv[kernel=3,stride>=2]", "b=Resize"]) == {
        "a": ["Softplus", "Conv[kernel=3,stride>=2]"],
        "b": ["Resize"],
    }
    assert parse_cannot(["a=Softplus", "a=Resize"]) == {"a": ["Softplus", "Resize"]}, "they add up"
    assert parse_workers(["a=2", "b=3"]) == {"a": 2, "b": 3}
    with pytest.raises(InvalidInputError, match="--workers a=3: 'a' is given twice"):
        parse_workers(["a=2", "a=3"])
    for text, why in (
        ("net", "deadline_us is 'net', must be NAME=TIME"),
        ("net=-1ms", "deadline_us is '-1ms', must be a time with its unit"),
    ):
        with pytest.raises(InvalidInputError, match=why):
            Service(deadline_us=text)  # type: ignore[arg-type] # it may be a text
    with pytest.raises(InvalidInputError, match="'a': expected a"):
        parse_cannot(["a"])
    (tmp_path / "plan.json").write_text("{}")
    with pytest.raises(InvalidInputError, match="is a plan, which is served alone"):
        subject([str(tmp_path / "plan.json"), "squeezenet"], Opening(), None)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("--host 0.0.0.0", "token"),
        ("--deadline x", "must be NAME=TIME"),
        ("--policy nobody", "nobody"),
        ("--cannot x", "expected a"),
        ("--hot a=zone", "expected a unit, a zone and degrees"),
        ("--hot a=no_zone:85C", "no thermal zone 'no_zone'"),
        ("--rest 5K", "--rest needs a heat to stay below"),
        ("--port -1", "--port is -1, must be at least 0"),
        ("--port -x", "--port is '-x', must be a whole number"),
        ("--socket s --port 99", "--socket s has no port; leave out --port"),
    ],
)
def test_bad_words_exit_with_2_before_models_are_opened(
    words: str, why: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "open_coordinator", lambda *_, **__: pytest.fail("models are opened"))
    assert main(["serve", "squeezenet", "--units", "core0", *words.split()]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert why in " ".join(said.split())


@pytest.mark.parametrize("named", ["plan.json", "net --problem problem.json"])
@pytest.mark.parametrize(
    "words", ["--units core0", "--emulate core0=50%", "--precision low", "--device d.json"]
)
def test_units_of_a_plan_or_a_problem_are_not_chosen_again(
    named: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """They had been ignored."""
    assert main(["serve", *named.split(), *words.split(), "--port", "0"]) == 2
    option, file = words.split(maxsplit=1)[0], named.rsplit(maxsplit=1)[-1]
    assert f"{option}: the units of {file} were chosen when it was profiled" in capsys.readouterr().err


PROGRAM = """
import gapless

NET = gapless.running.CallableModel(
    name="net",
    inputs=(gapless.running.TensorSpec(name="x", shape=(16,)),),
    layers=(gapless.running.CallableLayer(name="y", variants={"*": lambda x: 2 * x}, inputs=("x",)),),
    outputs=("y",),
)
"""


@pytest.mark.slow
def test_the_command_serves_until_a_signal_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "gapless", "serve", "net.py:NET", "--units", "core0"]
    command += ["--socket", "s", "--control", "away", "--trace", "t.json", "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=_environment()
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("net: numbers agree with the uncut model")
        assert process.stderr.readline() == "net: its one session is loaded\n"
        assert process.stderr.readline() == "net at unix:s; Ctrl-C stops\n"
        found = over_socket("s", "POST", INFER, json_body(vector(3.0)))
        assert found.document["outputs"][0]["data"] == [6.0] * 16
        Path("away").write_text("core0\n")
        assert process.stderr.readline() == "unit 'core0' is away: named in the control file\n"
        assert over_socket("s", "POST", INFER, json_body(vector(3.0))).code == 503
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert '"answered": 1' in out
    assert Path("t.json").exists()


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.slow
def test_a_signal_that_comes_at_once_ends_the_command_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: signal.Signals
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "gapless", "serve", "net.py:NET", "--units", "core0", "--socket", "s"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=_environment()
    ) as process:
        assert process.stderr is not None
        while "Ctrl-C stops" not in process.stderr.readline():
            assert process.poll() is None
        process.send_signal(kind)
        out, told = process.communicate(timeout=60)
    assert (process.returncode, told, Path("s").exists()) == (0, "", False)
    assert out.startswith("0 requests in ")


@pytest.mark.slow
def test_a_plan_that_comes_back_is_served_while_a_worker_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model, plan = plan_file(tmp_path)
    inputs = [model.sample_inputs(seed) for seed in range(60)]
    command = [sys.executable, "-m", "gapless", "serve", str(plan), "--socket", "s", "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=_environment()
    ) as process:
        assert process.stderr is not None
        said = [process.stderr.readline() for _ in range(3)]
        assert said[0].startswith("net: numbers agree with the uncut model"), said
        with ThreadPoolExecutor(4) as pool:
            answers = pool.map(lambda given: over_socket("s", "POST", INFER, json_body(given["x"])), inputs)
            found = []
            for number, answer in enumerate(answers):
                found.append(answer)
                if number == 20:
                    os.kill(_workers_of(process.pid)[0], signal.SIGKILL)
        process.send_signal(signal.SIGTERM)
        out, told = process.communicate(timeout=60)
    assert process.returncode == 0, told
    assert "was killed by SIGKILL" in told
    chunks = {unit["name"]: unit["chunks"] for unit in json.loads(out)["units"]}
    assert max(chunks.values()) >= 2 * 60, chunks  # one of them has two chunks
    for given, answer in zip(inputs, found, strict=True):
        assert answer.code == 200, answer.body
        (output,) = answer.document["outputs"]
        right = model.reference(given)[output["name"]]
        assert np.allclose(np.reshape(output["data"], right.shape), right, atol=1e-4)


def _workers_of(pid: int) -> list[int]:
    """Return the workers of units that a server has started."""
    units = {f"core{core}" for core in os.sched_getaffinity(0)}
    return [child for child in workers(pid) if Path(f"/proc/{child}/comm").read_text().strip() in units]


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(gapless.__file__).parent.parent)}
