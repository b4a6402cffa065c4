"""`serve --local`: two nodes of Ray asked through HTTP, with the numbers of the model; states and batches."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gapless
from gapless.api.models import open_model
from gapless.cli.tasks.serving import ClusterPlace
from gapless.executor.coordination.tally import Fate
from gapless.formulations.errors import InvalidInputError
from gapless.question.service import Service
from gapless.question.subjects import Machine
from tests.executor.cluster.devices import own_cluster
from tests.gapless.conftest import Cli
from tests.gapless.serving.clients import Response, over_socket

FILE = Path(__file__)
NET = f"{FILE.with_name('recurrent.py')}:NET"
BATCHES = [f"slow{size and f'*{size}'}={FILE.with_name('batched.py')}:SLOW{size or 1}" for size in ("", 2, 4)]


def body(name: str, array: Any, **parameters: Any) -> bytes:
    tensor = {"name": name, "shape": list(array.shape), "datatype": "FP32", "data": array.ravel().tolist()}
    return json.dumps({"inputs": [tensor], "parameters": parameters}).encode()


def output(found: Response) -> list[float]:
    assert found.code == 200, found.body
    values: list[float] = found.document["outputs"][0]["data"]
    return values


@contextmanager
def served(*models: str, **options: Any) -> Iterator[tuple[int, Any]]:
    """Serve models from two devices in this process, and yield the port and the coordinator."""
    with (
        own_cluster("a", "b") as (cluster, _),
        gapless.coordination.open_coordinator(models, cluster=cluster, check=False) as opened,
        gapless.running.Server(opened, port=0, **options) as server,
    ):
        yield int(server.url.rpartition(":")[2]), opened


@pytest.mark.slow
def test_a_sequence_keeps_its_state_wherever_its_requests_run() -> None:
    with served(NET, states={"net": {"h": "h_out"}}) as (port, opened):
        sums = []
        for number in range(6):
            opened.withdraw("ab"[number % 2])
            marks = {"sequence_id": 5, "sequence_start": number == 0, "sequence_end": number == 5}
            ask = body("x", np.full(4, number + 1.0, np.float32), **marks)
            sums.append(output(over_socket(port, "POST", "/v2/models/net/infer", ask))[0])
            opened.restore("ab"[number % 2])
        assert sums == [1, 3, 6, 10, 15, 21]
        assert all(unit.chunks for unit in opened.statistics().units)


@pytest.mark.slow
def test_a_sequence_over_grpc_runs_on_devices() -> None:
    grpc = pytest.importorskip("tritonclient.grpc")
    with (
        own_cluster("a", "b") as (cluster, _),
        gapless.serve([NET], cluster=cluster, port=0, grpc_port=0, states={"net": {"h": "h_out"}}) as server,
        grpc.InferenceServerClient(f"127.0.0.1:{server.grpc_port}") as client,
    ):
        sums = []
        for number in range(4):
            server.coordinator.withdraw("ab"[number % 2])
            tensor = grpc.InferInput("x", [4], "FP32")
            tensor.set_data_from_numpy(np.full(4, number + 1.0, np.float32))
            found = client.infer("net", [tensor], sequence_id=5, sequence_start=number == 0)
            sums.append(found.as_numpy("y")[0])
            server.coordinator.restore("ab"[number % 2])
        assert sums == [1, 3, 6, 10]
        assert all(unit.chunks for unit in server.coordinator.statistics().units)


@pytest.mark.slow
def test_requests_run_together_on_devices() -> None:
    with served(*BATCHES, max_delay_us=20_000) as (port, opened):

        def ask(value: int) -> float:
            given = body("x", np.full((1, 8), value, np.float32))
            return output(over_socket(port, "POST", "/v2/models/slow/infer", given))[0]

        with ThreadPoolExecutor(16) as pool:
            assert list(pool.map(ask, range(1, 33))) == [10.0 * value for value in range(1, 33)]
        assert opened.statistics().total(Fate.ANSWERED) < 32


@pytest.mark.parametrize(
    ("machine", "service", "words"),
    [
        (Machine(emulate={"core1": 500}), Service(), r"--emulate is about this machine.*--local a=core0:50%"),
        (Machine(device=Path("d.json")), Service(), "--device is about this machine"),
        (Machine(), Service(hot=("a=zone:85C",)), "--hot is about this machine.*in a file: --control"),
    ],
)
def test_options_of_one_machine_are_refused(machine: Machine, service: Service, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        ClusterPlace.refuse(machine, service)
    ClusterPlace.refuse(Machine(units=("node1",)), Service())


def test_what_is_planned_over_devices_is_not_served_here(cli: Cli, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    words = "the plan is for several devices.*--address HOST:PORT.*`gapless serve`"
    assert cli("plan", "squeezenet", "--platform", "epipe-case-1", "--out", plan).code == 0
    refused = cli("serve", plan, "--port", "0", "--seconds", "1s")
    assert refused.code == 2
    assert re.search(words, refused.err)
    problem = gapless.clusters.cluster_problem("squeezenet", "epipe-case-1")
    with pytest.raises(InvalidInputError, match=words):
        gapless.coordination.open_coordinator(["squeezenet"], problem=problem)


def test_a_cluster_that_cannot_be_joined_is_told(cli: Cli) -> None:
    pytest.importorskip("ray", reason="needs the extra cluster")
    words = ("serve", "squeezenet", "--port", "0", "--seconds", "1s")
    refused = cli(*words, "--local", "2", "--address", "a:1")
    assert refused.code == 2
    assert "give one of them" in refused.err
    missing = cli(*words, "--address", "127.0.0.1:9")
    assert missing.code == 5, missing.err
    assert "nobody answers at 127.0.0.1:9" in missing.err


@pytest.mark.slow
@pytest.mark.measures
def test_the_command_serves_a_network_from_two_nodes_and_stops_them() -> None:
    pytest.importorskip("ray", reason="needs the extra cluster")
    model = open_model("squeezenet")
    inputs = [model.sample_inputs(seed) for seed in range(12)]
    command = [sys.executable, "-m", "gapless", "serve", "squeezenet"]
    command += ["--local", "2", "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = ""
        while " at http://127.0.0.1:" not in said:
            said = process.stderr.readline()
            assert said, process.wait()
        port = int(said.rpartition(";")[0].rpartition(":")[2])

        def ask(given: Any) -> list[float]:
            return output(
                over_socket(port, "POST", "/v2/models/squeezenet/infer", body("image", given["image"]))
            )

        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(ask, inputs))
        for given, values in zip(inputs, found, strict=True):
            right = model.reference(given)["logits"].ravel()
            assert np.allclose(values, right, rtol=1e-3, atol=1e-3 * np.abs(right).max())
        for what, code in (("unload", 503), ("load", 200)):
            assert over_socket(port, "POST", f"/v2/repository/models/squeezenet/{what}").code == 200
            asked = body("image", inputs[0]["image"])
            assert over_socket(port, "POST", "/v2/models/squeezenet/infer", asked).code == code
        assert over_socket(port, "POST", "/v2/units/node0/withdraw").code == 200
        asked = body("image", inputs[0]["image"])
        answer = over_socket(port, "POST", "/v2/models/squeezenet/infer", asked).document
        assert "node1" in json.dumps(answer["parameters"])
        os.kill(process.pid, signal.SIGTERM)
        out, told = process.communicate(timeout=60)
    assert process.returncode == 0, told
    document = json.loads(out)
    (counts,) = document["models"]
    assert counts["fates"]["answered"] == 14
    assert sum(counts["fates"].values()) == 14
    assert {unit["name"]: bool(unit["chunks"]) for unit in document["units"]} == {
        "node0": True,
        "node1": True,
    }
