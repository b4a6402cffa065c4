"""Units in the words of the engines: exactly what gapless itself asks for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import MNN
import pytest

from gapless.executor.engines.mnn_engine import MnnEngine, backend_name
from gapless.executor.engines.mnn_session import MnnSession
from gapless.executor.engines.ort_engine import PROVIDERS
from gapless.executor.engines.ort_session import _options
from gapless.executor.export.folder import exported_unit, mnn_settings, ort_settings
from gapless.executor.export.kinds import ExportKind
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.hardware import EngineSettings, MemoryMode, Precision, ProcessingUnit, UnitKind
from tests.executor.engines.pieces import OPENCL, UNIT, conv

LOW = replace(
    UNIT, threads=2, engine=EngineSettings(precision=Precision.LOW, memory=MemoryMode.LOW)
)  # fmt: skip


@pytest.mark.parametrize("threads", [1, 3])
def test_onnx_runtime_is_asked_for_what_the_engine_asks_for(threads: int) -> None:
    found = ort_settings(replace(UNIT, threads=threads))
    assert found is not None
    asked = _options(threads=threads)
    assert asked.intra_op_num_threads == found.intra_op_num_threads == threads
    assert asked.inter_op_num_threads == found.inter_op_num_threads
    assert asked.execution_mode.name == found.execution_mode
    for key, value in found.config.items():
        assert asked.get_session_config_entry(key) == value
    assert found.providers == (PROVIDERS["cpu"],)


@pytest.mark.parametrize("unit", [UNIT, LOW, OPENCL], ids=["cpu", "low", "opencl"])
def test_mnn_is_asked_for_what_the_engine_asks_for(
    unit: ProcessingUnit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, Any]] = []
    real = MNN.Interpreter

    class Listening:
        def __init__(self, path: str) -> None:
            self._real = real(path)

        def createSession(self, config: dict[str, Any]) -> Any:
            asked.append(dict(config))
            return self._real.createSession(config)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._real, name)

    (artifact,) = MnnEngine().prepare([conv()], folder=tmp_path)
    monkeypatch.setattr(MNN, "Interpreter", Listening)
    session = MnnSession(artifact, unit, version="", allow_mismatch=True)
    found = mnn_settings(unit)
    assert found is not None
    assert asked == [found.config]
    granted = backend_name(session._info(2))
    assert (session._info(2) in found.granted) == (granted == unit.engine.backend)
    session.close()


def test_a_backend_that_an_engine_lacks_is_refused_but_for_plain_models() -> None:
    assert ort_settings(OPENCL) is None
    with pytest.raises(InvalidInputError, match="asks for the backend 'opencl', which onnxruntime does not"):
        exported_unit(OPENCL, "onnxruntime", ExportKind.ONNXRUNTIME)
    assert exported_unit(OPENCL, "onnxruntime", ExportKind.ONNX).session is None
    npu = replace(OPENCL, kind=UnitKind.NPU, engine=EngineSettings(backend="qnn"))
    with pytest.raises(InvalidInputError, match="'qnn', which mnn does not have"):
        exported_unit(npu, "mnn", ExportKind.MNN)
