"""The files: each with what it shows, and the sizes that its exporter leaves open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import onnx
from onnx import ModelProto

from . import classical, control, language, quantised, vision

Shapes = Mapping[str, tuple[int, ...]]
Source = Callable[[], ModelProto]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignFile:
    """One file.

    Attributes
    ----------
    name
        What it is called.
    build
        Makes it.
    shapes
        Of inputs with open dimensions.
    external
        Whether its weights lie in a file beside it.
    refused
        Whether it holds what cannot be planned, so that a clear refusal is right.
    """

    name: str
    build: Source
    shapes: Shapes = field(default_factory=dict)
    external: bool = False
    refused: bool = False

    def write(self, folder: Path) -> Path:
        """Write it into a folder."""
        path = folder / f"{self.name}.onnx"
        weights = f"{self.name}.weights"
        onnx.save(
            self.build(), path, save_as_external_data=self.external, location=weights, size_threshold=1024
        )
        return path


def files() -> tuple[ForeignFile, ...]:
    """Return all files: those that are made here, then those inside installed packages."""
    return (*_vision(), *_language(), *_control(), *_classical(), *_quantised(), *_of_packages())


def _vision() -> list[ForeignFile]:
    image = {"input": (1, 3, 64, 64)}
    made = vision.torch_script_resnet
    exports = {9: "torch-1.4", 11: "torch-1.7", 13: "torch-1.12", 17: "torch-2.1", 20: "torch-2.5"}
    torch = [
        ForeignFile(name=f"{name}-opset{opset}", build=partial(made, opset), shapes=image)
        for opset, name in exports.items()
    ]
    return [
        *torch,
        ForeignFile(
            name="torch-external-data", build=vision.torch_script_resnet, shapes=image, external=True
        ),
        ForeignFile(name="torch-dynamo", build=vision.torch_dynamo_cnn, shapes={"input": (1, 3, 48, 48)}),
        ForeignFile(name="mxnet-opset7", build=vision.mxnet_cnn),
        ForeignFile(name="keras-tf2onnx", build=vision.keras_cnn, shapes={"input": (1, 64, 64, 3)}),
        ForeignFile(name="paddle", build=vision.paddle_segmentation, shapes=image),
        ForeignFile(name="caffe2-shuffle", build=vision.caffe_shuffle),
        ForeignFile(name="float16", build=vision.half_precision_cnn),
        ForeignFile(
            name="wavenet", build=vision.convolutions_in_one_dimension, shapes={"input": (1, 16, 40)}
        ),
        ForeignFile(name="900-operators", build=vision.many_operators, shapes={"input": (1, 3, 32, 32)}),
    ]


def _language() -> list[ForeignFile]:
    words = ("input_ids", "attention_mask", "token_type_ids")
    past = {f"past.{layer}.{kind}": (1, 4, 16, 16) for layer in range(2) for kind in ("key", "value")}
    sequence = {"input": (1, 20, 16)}
    return [
        ForeignFile(name="bert", build=language.bert_by_torch, shapes=dict.fromkeys(words, (1, 24))),
        ForeignFile(
            name="decoder-with-cache",
            build=language.decoder_with_cache,
            shapes={"input_ids": (1, 1), **past},
        ),
        ForeignFile(name="ort-fused", build=language.fused_by_onnxruntime, shapes={"input_ids": (1, 24)}),
        ForeignFile(
            name="attention-opset23", build=language.attention_of_opset_23, shapes={"input": (1, 24, 64)}
        ),
        ForeignFile(name="vit", build=language.vision_transformer, shapes={"input": (1, 3, 32, 32)}),
        ForeignFile(name="lstm-both-ways", build=language.lstm_both_ways, shapes=sequence),
        ForeignFile(name="gru-both-ways", build=language.gru_both_ways, shapes=sequence),
        ForeignFile(name="lstm", build=language.lstm_one_way, shapes=sequence),
    ]


def _control() -> list[ForeignFile]:
    image = {"input": (1, 3, 64, 64)}
    return [
        ForeignFile(name="if-squeeze", build=control.squeeze_under_if, shapes=image),
        ForeignFile(name="if-on-data", build=control.branches_by_data),
        ForeignFile(name="loop", build=control.loop_of_fixed_turns, shapes=image),
        ForeignFile(name="loop-decoder", build=control.greedy_decoding, shapes={"input": (1, 12, 16)}),
        ForeignFile(name="scan", build=control.scan_of_frames, shapes={"input": (10, 8)}),
        ForeignFile(name="sequence", build=control.frames_in_a_sequence),
        ForeignFile(name="nms-padded", build=control.detector_of_fixed_size),
        ForeignFile(name="nms-inside", build=control.detector_with_suppression),
        ForeignFile(name="yolo", build=control.detector_with_raw_head, shapes={"images": (1, 3, 64, 96)}),
    ]


def _classical() -> list[ForeignFile]:
    rows = {"X": (8, classical.FEATURES)}
    return [
        ForeignFile(name="sklearn-forest", build=classical.forest_classifier, shapes=rows),
        ForeignFile(name="lightgbm", build=classical.boosted_regressor, shapes=rows),
        ForeignFile(name="sklearn-pipeline", build=classical.linear_pipeline, shapes=rows),
        ForeignFile(name="sklearn-zipmap", build=classical.zipped_classifier, refused=True),
    ]


def _quantised() -> list[ForeignFile]:
    return [
        ForeignFile(name="int8-qdq", build=quantised.static_with_pairs),
        ForeignFile(name="int8-qoperator", build=quantised.static_with_operators),
        ForeignFile(name="int8-dynamic", build=quantised.dynamic, shapes={"input": (1, 128)}),
        ForeignFile(name="int8-trained", build=quantised.trained_with_pairs),
        ForeignFile(name="int4-weights", build=quantised.weights_of_four_bits, shapes={"input": (4, 64)}),
    ]


_PACKAGED: tuple[tuple[str, str, Shapes], ...] = (
    ("rapidocr_onnxruntime", "models/ch_PP-OCRv4_det_infer.onnx", {"x": (1, 3, 96, 160)}),
    ("rapidocr_onnxruntime", "models/ch_PP-OCRv4_rec_infer.onnx", {"x": (1, 3, 48, 160)}),
    ("rapidocr_onnxruntime", "models/ch_ppocr_mobile_v2.0_cls_infer.onnx", {"x": (1, 3, 48, 192)}),
    ("onnx", "backend/test/data/light/light_squeezenet.onnx", {}),
    ("onnx", "backend/test/data/light/light_resnet50.onnx", {}),
    ("onnx", "backend/test/data/light/light_densenet121.onnx", {}),
    ("onnx", "backend/test/data/light/light_shufflenet.onnx", {}),
    ("onnx", "backend/test/data/light/light_inception_v2.onnx", {}),
    ("onnx", "backend/test/data/pytorch-converted/test_Conv3d/model.onnx", {}),
)
"""(package, file in it, shapes): PP-OCR by Paddle's exporter, and the ONNX project's own test files."""


def _of_packages() -> list[ForeignFile]:
    found = []
    for package, inside, shapes in _PACKAGED:
        spec = find_spec(package)
        path = None if spec is None or spec.origin is None else Path(spec.origin).parent / inside
        if path is not None and path.is_file():
            name = path.stem if path.stem != "model" else path.parent.name
            found.append(ForeignFile(name=name, build=partial(onnx.load, path), shapes=shapes))
    return found
