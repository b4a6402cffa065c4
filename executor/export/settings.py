"""Units in the words of the engines: what a session is asked for."""

from __future__ import annotations

from collections.abc import Callable

from ...formulations.errors import InvalidInputError
from ...formulations.hardware import ProcessingUnit
from ..engines.mnn_engine import WORDS, backend_name
from ..engines.ort_engine import PROVIDERS
from .kinds import ExportKind
from .manifest import ExportedUnit, MnnSettings, OrtSettings

_MOST_BACKENDS = 64
"""Above every number by which MNN reports a backend."""

Settings = OrtSettings | MnnSettings


def ort_settings(unit: ProcessingUnit) -> OrtSettings | None:
    """Return what the engine "onnxruntime" asks for on a unit; None: it has no such backend."""
    provider = PROVIDERS.get(unit.engine.backend)
    if provider is None:
        return None
    return OrtSettings(
        providers=(provider,),
        intra_op_num_threads=unit.threads or 1,
        inter_op_num_threads=1,
        execution_mode="ORT_SEQUENTIAL",
        config={"session.intra_op.allow_spinning": "0"},
    )


def mnn_settings(unit: ProcessingUnit) -> MnnSettings | None:
    """Return what the engine "mnn" asks for on a unit; None: it has no such backend."""
    asked = unit.engine
    if asked.backend not in WORDS:
        return None
    config: dict[str, str | int] = {
        "backend": WORDS[asked.backend],
        "precision": asked.precision.value,
        "memory": asked.memory.value,
    }
    if asked.backend == "cpu":
        config["numThread"] = unit.threads or 1
    granted = (number for number in range(_MOST_BACKENDS) if backend_name(number) == asked.backend)
    return MnnSettings(config=config, granted=tuple(granted))


_SETTINGS: dict[str, Callable[[ProcessingUnit], Settings | None]] = {
    "onnxruntime": ort_settings,
    "mnn": mnn_settings,
}
ENGINES = tuple(_SETTINGS)
"""Engines whose files can be exported."""


def exported_unit(unit: ProcessingUnit, engine: str, kind: ExportKind) -> ExportedUnit:
    """Return a unit with the settings of its sessions.

    `kind`: plain ONNX files are for any runtime, so there a unit may be one that the engine cannot drive.
    """
    session = _SETTINGS[engine](unit)
    if session is None and kind is not ExportKind.ONNX:
        raise InvalidInputError(
            f"unit {unit.name!r} asks for the backend {unit.engine.backend!r}, which {engine} does not have: "
            "export to another engine, or --to onnx for the models alone"
        )
    return ExportedUnit(
        name=unit.name,
        kind=str(unit.kind),
        cores=unit.cores,
        threads=unit.threads,
        quota_permille=unit.quota_permille,
        backend=unit.engine.backend,
        precision=unit.engine.precision.value,
        memory=unit.engine.memory.value,
        session=session,
    )
