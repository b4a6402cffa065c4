from __future__ import annotations

import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper

from benchmarks.fuzz.hostile import exploding_functions
from gapless.executor.graph import model_file
from gapless.executor.graph.model_file import read_model_file
from gapless.formulations.errors import InvalidModelError

from .models import model, node, tiny, value, weights


def written(folder: Path, content: bytes | ModelProto) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(content if isinstance(content, bytes) else content.SerializeToString())
    return path


def refused(path: Path, *words: str, materialize: bool = False) -> str:
    with pytest.raises(InvalidModelError) as caught:
        read_model_file(path, materialize=materialize)
    text = str(caught.value)
    assert [word for word in (str(path), *words) if word not in text] == [], text
    return text


def test_a_sound_file_is_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, tiny())
    monkeypatch.chdir(tmp_path)
    file = read_model_file("model.onnx")
    assert file.path == tmp_path / "model.onnx"
    assert [entry.op_type for entry in file.model.graph.node] == ["MatMul", "Relu"]


def test_the_digest_follows_the_content(tmp_path: Path) -> None:
    first = read_model_file(written(tmp_path, tiny())).digest
    assert read_model_file(written(tmp_path, tiny())).digest == first
    assert read_model_file(written(tmp_path, tiny(initializers=weights(1, w=(4, 4))))).digest != first


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"hello, this is no model\n" * 20, "is not an ONNX model"),
        (tiny().SerializeToString()[:-7], "truncated"),
        (np.random.default_rng(0).bytes(5000), "is not an ONNX model"),
        (b"\x00\x00\x00\x1cTFL3xxxxxxxx", "TensorFlow Lite"),
        (b"PK\x03\x04zip", "PyTorch"),
        (b"<!DOCTYPE html>", "download the model again"),
        (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
        (ModelProto(ir_version=8).SerializeToString(), "without any operator"),
    ],
)
def test_what_is_no_model_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    refused(written(tmp_path, content), words)


def test_nesting_without_end_is_refused(tmp_path: Path) -> None:
    def field(number: int, content: bytes) -> bytes:
        size, head = len(content), bytearray()
        while size > 127:
            head.append(size & 127 | 128)
            size >>= 7
        return bytes([number << 3 | 2, *head, size]) + content

    graph = b""
    for _ in range(5000):
        graph = field(1, field(5, field(6, graph)))  # a graph in an attribute of a node of a graph
    refused(written(tmp_path, field(7, graph)), "nested too deeply")


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    refused(tmp_path / "missing.onnx", "No such file")
    refused(tmp_path, "is a folder")
    os.mkfifo(tmp_path / "pipe")
    refused(tmp_path / "pipe", "not a regular file")
    with pytest.raises(InvalidModelError, match="null"):
        read_model_file("a\0b")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, tiny())
    path.chmod(0)
    refused(path, "Permission denied")


def test_a_file_beyond_the_limit_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "large.onnx"
    with path.open("wb") as file:
        file.truncate(model_file.MAX_MODEL_BYTES + 1)  # sparse: takes no space
    refused(path, "2.13 GB", "2 GiB")


@pytest.mark.parametrize("text", [b"MatMul", b"test"])
def test_names_that_are_no_text_are_refused(tmp_path: Path, text: bytes) -> None:
    content = tiny().SerializeToString()
    assert text in content
    refused(written(tmp_path, content.replace(text, b"\xff" * len(text))), "not UTF-8")


def test_versions_from_the_future_are_refused(tmp_path: Path) -> None:
    future = tiny(opsets={"": 999})
    future.ir_version = 99
    text = refused(written(tmp_path, future), "IR version 99", "opset 999", "pip install -U onnx")
    assert str(onnx.defs.onnx_opset_version()) in text


def test_the_checker_has_its_say(tmp_path: Path) -> None:
    nodes = [node("Relu", "x", "y"), node("Relu", "x", "y")]
    refused(written(tmp_path, tiny(nodes=nodes, initializers=[])), "checker", "(SSA)")


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("dims", [[3_000_000_000], [10**9, 10**9, 10**9], [4, 3]])
def test_a_claim_beyond_the_data_is_refused_at_once(tmp_path: Path, dims: list[int]) -> None:
    claim = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=dims, raw_data=bytes(64))
    refused(written(tmp_path, tiny(initializers=[claim])), "'w' claims", "holds 64")


def test_all_defects_of_tensors_are_listed(tmp_path: Path) -> None:
    bad = [
        TensorProto(name="a", data_type=TensorProto.FLOAT, dims=[-3]),
        TensorProto(name="b", data_type=99, dims=[1]),
        TensorProto(name="c", data_type=TensorProto.INT64, dims=[5], int64_data=[1, 2]),
        TensorProto(name="d", data_type=TensorProto.STRING, dims=[2], string_data=[b"x"]),
    ]
    text = refused(written(tmp_path, tiny(initializers=bad)), "'a'", "'b'", "'c'", "'d'")
    assert "element type 99" in text


def test_a_constant_inside_a_node_is_checked_too(tmp_path: Path) -> None:
    claim = TensorProto(name="huge", data_type=TensorProto.FLOAT, dims=[10**9], raw_data=b"1234")
    nodes = [node("Constant", "", "w", value=claim), node("MatMul", "x w", "h"), node("Relu", "h", "y")]
    refused(written(tmp_path, tiny(nodes=nodes, initializers=[])), "'huge' claims")


def test_sparse_weights_are_refused(tmp_path: Path) -> None:
    sparse = tiny()
    dense = weights(v=(1,))[0]
    places = helper.make_tensor("places", TensorProto.INT64, [1], [0])
    sparse.graph.sparse_initializer.append(helper.make_sparse_tensor(dense, places, [4]))
    sparse.graph.node.append(node("Constant", "", "c", sparse_value=sparse.graph.sparse_initializer[0]))
    assert refused(written(tmp_path, sparse), "'v' is sparse").count("is sparse") == 2


def with_external(folder: Path, *, location: str = "weights.bin", length: int = 64, offset: int = 0) -> Path:
    proto = tiny()
    (weight,) = proto.graph.initializer
    (folder / "weights.bin").write_bytes(weight.raw_data)
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    for key, text in (("location", location), ("offset", str(offset)), ("length", str(length))):
        weight.external_data.add(key=key, value=text)
    return written(folder, proto)


def test_external_data_become_part_of_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = with_external(tmp_path)
    monkeypatch.chdir("/")
    file = read_model_file(path)
    assert file.model.graph.initializer[0].raw_data == (tmp_path / "weights.bin").read_bytes()
    assert file.model.graph.initializer[0].data_location == TensorProto.DEFAULT
    (tmp_path / "weights.bin").write_bytes(bytes(64))
    assert read_model_file(path).digest != file.digest


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"location": "missing.bin"}, "cannot be read (No such file"),
        ({"location": "../weights.bin"}, "not inside the folder"),
        ({"location": "/etc/passwd"}, "not inside the folder"),
        ({"location": "a/../../weights.bin"}, "not inside the folder"),
        ({"location": ""}, "without a usable file name"),
        ({"location": "a\0b"}, "without a usable file name"),
        ({"location": "."}, "without a usable file name"),
        ({"offset": 8}, "too short"),
        ({"length": 3_000_000_000}, "3000000000 bytes are said"),
        ({"length": -1}, "the length '-1', not a number"),
        ({"offset": 10**30}, "not a number"),
    ],
)
def test_bad_external_data_are_refused(tmp_path: Path, options: dict[str, str], words: str) -> None:
    refused(with_external(tmp_path, **options), words, "'w'")  # type: ignore[arg-type]


@pytest.mark.usefixtures("little_memory")
def test_external_data_that_claim_gigabytes_are_refused_at_once(tmp_path: Path) -> None:
    path = with_external(tmp_path, length=3_000_000_000)
    proto = onnx.load_model(path, load_external_data=False)
    proto.graph.initializer[0].dims[:] = [750_000_000]
    refused(written(tmp_path, proto), "too short", "it has 64")
    with (tmp_path / "weights.bin").open("wb") as file:
        file.truncate(3_000_000_000)  # now the data are there: too many of them
    refused(path, "3.00 GB", "2 GiB")


def symbolic(path: Path, real: Path) -> None:
    path.symlink_to(real)


def hard(path: Path, real: Path) -> None:
    path.hardlink_to(real)


@pytest.mark.parametrize("link", [symbolic, hard])
def test_links_are_refused_unless_materialized(tmp_path: Path, link: Callable[[Path, Path], None]) -> None:
    folder = tmp_path / "snapshot"
    folder.mkdir()
    path = with_external(folder)
    (folder / "weights.bin").rename(tmp_path / "blob")
    link(folder / "weights.bin", tmp_path / "blob")
    refused(path, f"{link.__name__} link" if link is symbolic else "hard link", "--materialize")
    file = read_model_file(path, materialize=True)
    assert file.model.graph.initializer[0].raw_data == (tmp_path / "blob").read_bytes()


def test_a_linked_folder_is_a_link_too(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    path = with_external(tmp_path / "inside", location="data/weights.bin")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "inside" / "weights.bin").rename(tmp_path / "elsewhere" / "weights.bin")
    (tmp_path / "inside" / "data").symlink_to(tmp_path / "elsewhere")
    refused(path, "symbolic link")
    assert read_model_file(path, materialize=True).digest


def test_initializers_among_the_inputs_are_no_inputs(tmp_path: Path) -> None:
    old = tiny(inputs=[value("x", [1, 4]), value("w", [4, 4])])
    old.ir_version = 3
    file = read_model_file(written(tmp_path, old))
    assert [entry.name for entry in file.model.graph.input] == ["x"]
    assert file.model.ir_version >= 4


def test_local_functions_are_inlined(tmp_path: Path) -> None:
    double = helper.make_function(
        "mine", "Double", ["a"], ["b"], [node("Add", "a a", "b")], [helper.make_opsetid("", 17)]
    )
    proto = model(
        [helper.make_node("Double", ["x"], ["h"], domain="mine"), node("Relu", "h", "y")],
        [value("x", [2])],
        [value("y", [2])],
        opsets={"": 17, "mine": 1},
        functions=[double],
    )
    file = read_model_file(written(tmp_path, proto))
    assert [entry.op_type for entry in file.model.graph.node] == ["Add", "Relu"]
    assert not file.model.functions


def test_hostile_names_are_made_safe(tmp_path: Path) -> None:
    wild = ["in\x1b[31m\nput", "h" * 500, "   ", "h" * 501]
    proto = model(
        [helper.make_node("Relu", [a], [b]) for a, b in pairwise(wild)],
        [value(wild[0], [2])],
        [value(wild[-1], [2])],
    )
    graph = read_model_file(written(tmp_path, proto)).model.graph
    names = [graph.input[0].name, *(name for entry in graph.node for name in entry.output)]
    assert len(set(names)) == 4
    assert all(name.isprintable() and name.strip() and len(name) <= 120 for name in names)
    assert graph.output[0].name == names[-1]
    assert [entry.input[0] for entry in graph.node] == names[:-1]


def test_a_function_that_cannot_be_inlined_is_named(tmp_path: Path) -> None:
    proto = ModelProto.FromString(exploding_functions(2))
    proto.opset_import[1].version = 2
    refused(
        written(tmp_path, proto), "its function own.F0 cannot be inlined", "export the model for one opset"
    )


def test_a_file_with_another_digest_is_refused_before_it_is_checked(tmp_path: Path) -> None:
    path = written(tmp_path, tiny())
    digest = read_model_file(path).digest
    assert read_model_file(path, digest=digest).digest == digest
    with pytest.raises(InvalidModelError, match="has changed since it was loaded"):
        read_model_file(written(tmp_path, ModelProto.FromString(exploding_functions(31))), digest=digest)


def test_operators_in_any_order_are_put_in_order(tmp_path: Path) -> None:
    """As runtimes do; also where one needs a tensor inside a branch only, and inside a branch."""
    branch = helper.make_graph(
        [node("Neg", "s", "t"), node("Add", "h h", "s")], "branch", [], [value("t", [1, 4])]
    )
    nodes = [
        node("If", "c", "y", then_branch=branch, else_branch=branch),
        node("Cast", "m", "c", to=TensorProto.BOOL),
        node("ReduceMax", "x", "m", keepdims=0),
        node("MatMul", "x w", "h"),
    ]
    file = read_model_file(written(tmp_path, tiny(nodes=nodes)))
    order = [entry.op_type for entry in file.model.graph.node]
    assert order[-1] == "If"
    assert order.index("ReduceMax") < order.index("Cast")
    inner = file.model.graph.node[-1].attribute[0].g
    assert [entry.op_type for entry in inner.node] == ["Add", "Neg"]


def test_parts_that_nobody_takes_have_names(tmp_path: Path) -> None:
    """ONNX Runtime ends its process on parts without one."""
    split = helper.make_node("Split", ["x"], ["part", "", ""], axis=1)
    written(tmp_path, tiny(nodes=[split, node("Relu", "part", "y")], outputs=[value("y", None)]))
    (found, _) = read_model_file(tmp_path / "model.onnx").model.graph.node
    assert list(found.output) == ["part", "part#2", "part#3"]


def test_operators_in_a_circle_are_refused(tmp_path: Path) -> None:
    nodes = [node("Add", "x y", "h"), node("Relu", "h", "y")]
    refused(written(tmp_path, tiny(nodes=nodes)), "must be topologically sorted")


def test_old_files_need_not_repeat_their_weights_among_the_inputs(tmp_path: Path) -> None:
    old = tiny()
    old.ir_version = 3
    assert [entry.name for entry in read_model_file(written(tmp_path, old)).model.graph.input] == ["x"]
