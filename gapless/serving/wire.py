"""Messages of gRPC: classes made from files like inference.proto when they are first needed.

No generated code is kept: that of protoc demands a version of protobuf at least as new as the one that wrote
it, and its names would collide with those of a client in the same process (`tritonclient` has messages of the
same package). So the file is read here, into a pool of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto

INFERENCE, HEALTH = "inference.proto", "health.proto"

_COMMENT = re.compile(r"//[^\n]*")
_BLOCK = re.compile(r"\b(message|enum|service)\s+(\w+)\s*\{((?:[^{}]|\{[^{}]*\})*)\}")
_ONEOF = re.compile(r"\boneof\s+(\w+)\s*\{([^{}]*)\}")
_FIELD = re.compile(r"(repeated\s+)?(map<string,\s*(\w+)>|\w+)\s+(\w+)\s*=\s*(\d+)\s*;")
_VALUE = re.compile(r"(\w+)\s*=\s*(\d+)\s*;")
_METHOD = re.compile(r"rpc\s+(\w+)\((\w+)\)\s+returns\s+\((?:stream\s+)?(\w+)\);")
_PACKAGE = re.compile(r"\bpackage\s+([\w.]+);")


class Method(NamedTuple):
    """A method of a service, with the classes of its messages."""

    name: str
    request: Any
    response: Any


class Wire(NamedTuple):
    """A service, and the classes of all messages by name."""

    service: str
    methods: tuple[Method, ...]
    messages: Mapping[str, Any]


@cache
def wire(name: str = INFERENCE) -> Wire:
    """Return what a file of this folder says is spoken over gRPC."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    text = _COMMENT.sub("", Path(__file__).with_name(name).read_text(encoding="utf-8"))
    blocks = list(_BLOCK.finditer(text))
    (package,) = _PACKAGE.findall(text)
    file = descriptor_pb2.FileDescriptorProto(name=name, package=package, syntax="proto3")
    enums = {block[2] for block in blocks if block[1] == "enum"}
    for kind, named, body in (block.groups() for block in blocks):
        if kind == "message":
            _add_message(file.message_type.add(name=named), body, package, enums)
        elif kind == "enum":
            _add_enum(file, named, body)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = {
        message.name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{message.name}"))
        for message in file.message_type
    }
    ((_, service, rpcs),) = [block.groups() for block in blocks if block[1] == "service"]
    methods = tuple(Method(each, found[asked], found[said]) for each, asked, said in _METHOD.findall(rpcs))
    return Wire(f"{package}.{service}", methods, found)


def _add_enum(file: FileDescriptorProto, name: str, body: str) -> None:
    enum = file.enum_type.add(name=name)
    for value, number in _VALUE.findall(body):
        enum.value.add(name=value, number=int(number))


def _add_message(message: DescriptorProto, body: str, package: str, enums: set[str]) -> None:
    for index, (group, fields) in enumerate(_groups(body)):
        if group:
            message.oneof_decl.add(name=group)
        for repeated, kind, value, name, number in _FIELD.findall(fields):
            field = message.field.add(name=name, number=int(number))
            field.label = field.LABEL_REPEATED if repeated or value else field.LABEL_OPTIONAL
            if value:
                entry = message.nested_type.add(name=f"{name.title().replace('_', '')}Entry")
                entry.options.map_entry = True
                for key, number_of, of in (("key", 1, "string"), ("value", 2, value)):
                    part = entry.field.add(name=key, number=number_of, label=field.LABEL_OPTIONAL)
                    _set_type(part, of, package, enums)
                field.type, field.type_name = field.TYPE_MESSAGE, f".{package}.{message.name}.{entry.name}"
            else:
                _set_type(field, kind, package, enums)
            if group:
                field.oneof_index = index


def _groups(body: str) -> Iterator[tuple[str, str]]:
    """Yield the groups of fields of which one at most is set, by name, and then the other fields."""
    yield from ((found[1], found[2]) for found in _ONEOF.finditer(body))
    yield "", _ONEOF.sub("", body)


def _set_type(field: Any, kind: str, package: str, enums: set[str]) -> None:
    known = getattr(field, f"TYPE_{kind.upper()}", None)
    if known is not None:
        field.type = known
    else:
        field.type = field.TYPE_ENUM if kind in enums else field.TYPE_MESSAGE
        field.type_name = f".{package}.{kind}"
