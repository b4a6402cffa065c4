"""The files of PipeEdge as problems: a model, profiled devices, and which hosts there are.

PipeEdge (Hu et al. 2022, DSD; github.com/usc-isi/PipeEdge) writes three YAML files, which its
README_Scheduler describes: `models.yml`, `device_types.yml`, `devices.yml`. Its scheduler reads them as
`import_pipeedge` does; what differs is said there.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any, ClassVar

from ...formulations.cluster import Link, Pipelines
from ...formulations.costs import CostTable, NetworkCosts, Provenance
from ...formulations.errors import InvalidInputError
from ...formulations.hardware import Platform, ProcessingUnit
from ...formulations.json_files import parse_tree, read_bytes
from ...formulations.network import Layer, Network, Tensor
from ...formulations.problem import Problem
from ...formulations.terms import Objective
from ...formulations.validation import Defects, meant, shown

MEGABYTE = 2**20
"""PipeEdge counts so many bytes a MB, and so many bits a Mb."""

SLOTS = 2
"""Messages in front of and behind a stage: one that is exchanged and one that waits (sched-pipeline.cpp)."""

_LEAST_MBPS, _MOST = 8 / MEGABYTE, 1e7
"""Bandwidth of one byte a second, and the largest number of seconds, MB and Mbps that is believed."""

_DTYPE_BYTES = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "int8": 1, "uint8": 1}
MOST_BYTES, MOST_SECONDS, MOST_CHARACTERS = 4 * 2**20, 45.0, 1000
"""Of a YAML file, of reading it, and of one value in it: YAML is read at some 100 KB a second."""

_PARTLY: dict[str, Any] = {"extra": "ignore", "strict": True}
"""PipeEdge reads the keys that it knows, and no others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipeEdgeModel:
    """An entry of `models.yml`."""

    __pydantic_config__: ClassVar[Any] = _PARTLY

    layers: int
    parameters_in: int  # numbers of the input for one inference
    parameters_out: tuple[int, ...]
    """Numbers of the output of each layer for one inference; a shorter list is repeated."""
    mem_MB: tuple[float, ...]  # memory of each layer


@dataclass(frozen=True, slots=True, kw_only=True)
class PipeEdgeProfile:
    """Times of a model on a device type: `time_s` of each layer, for one micro-batch of `batch_size`."""

    __pydantic_config__: ClassVar[Any] = _PARTLY

    dtype: str
    batch_size: int
    time_s: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PipeEdgeDeviceType:
    """An entry of `device_types.yml`: memory, bandwidth, and profiles by the name of the model."""

    __pydantic_config__: ClassVar[Any] = _PARTLY

    mem_MB: float
    bw_Mbps: float
    model_profiles: dict[str, tuple[PipeEdgeProfile, ...] | None] | None = None

    def profiles(self, model: str) -> tuple[PipeEdgeProfile, ...]:
        """Return the profiles of a model."""
        return (self.model_profiles or {}).get(model) or ()


def import_pipeedge(
    models: str | Path,
    device_types: str | Path,
    devices: str | Path,
    *,
    model: str,
    batch: int | None = None,
    dtype: str | None = None,
) -> Problem:
    """Return the problem that three files of PipeEdge describe.

    Devices are called like their hosts. A layer keeps its time for a micro-batch, in whole microseconds; two
    hosts send to each other with the bandwidth of the slower one. Differences from PipeEdge's scheduler:

    * Many pipelines may stand side by side; `with_pipelines(problem, "one")` allows one.
    * The memory of a stage is the largest need of its layers, not what its first input and last output need.
    * The first stage has buffers for its input, as the others have.

    Parameters
    ----------
    models, device_types, devices
        The files.
    model
        Name of the model.
    batch, dtype
        Which profile: size of the micro-batch and type of its numbers ("torch.float32"). None: the only one
        that there is.

    Raises
    ------
    InvalidInputError
        PyYAML is not installed; a file cannot be read or is not valid; the model, a profile or a device
        type is not there, or it is not clear which profile is meant.
    """
    known = _read(models, dict[str, PipeEdgeModel], "models of PipeEdge")
    types = _read(device_types, dict[str, PipeEdgeDeviceType], "device types of PipeEdge")
    hosts = {
        name: found
        for name, found in _read(devices, dict[str, tuple[str, ...] | None], "devices of PipeEdge").items()
        if found
    }
    if model not in known:
        raise InvalidInputError(f"{models} has no model {shown(model)}; {meant(model, known)}")
    missing = [name for name in hosts if name not in types]
    if missing or not hosts:
        what = f"no device type {', '.join(map(repr, missing))}, of which it has hosts" if missing else ""
        raise InvalidInputError(f"{devices} has no hosts" if not hosts else f"{device_types} has {what}")
    chosen, left_out = _profiles(model, {name: types[name] for name in hosts}, batch, dtype)
    _check(model, known[model], chosen, {name: types[name] for name in chosen}, hosts)
    first = next(iter(chosen.values()))
    notes = [f"of {first.dtype}, {first.batch_size} inferences at once"]
    notes += [f"without {name}, which has no such profile" for name in left_out]
    item_bytes = _DTYPE_BYTES[_plain(first.dtype)] * first.batch_size
    return Problem(
        platform=Platform(
            name="pipeedge",
            units=tuple(
                # PipeEdge wants more memory than is needed, not as much.
                ProcessingUnit(name=host, memory_bytes=max(0, ceil(types[name].mem_MB * MEGABYTE) - 1))
                for name in chosen
                for host in hosts[name]
            ),
            source=f"{device_types} and {devices} of PipeEdge",
        ),
        networks=(_network(model, known[model], item_bytes),),
        costs=CostTable(
            units=tuple(host for name in chosen for host in hosts[name]),
            networks=(NetworkCosts(network=model, layer_us=_rows(chosen, hosts)),),
            batch=first.batch_size,
            provenance=Provenance(
                source=f"{device_types} of PipeEdge", method="isolated", notes="; ".join(notes)
            ),
        ),
        objective=Objective(terms=("throughput",)),
        data=Pipelines(
            types=tuple(name for name in chosen for _ in hosts[name]),
            links=tuple(_links({name: types[name] for name in chosen})),
            in_slots=SLOTS,
            out_slots=SLOTS,
        ),
    )


def _network(name: str, model: PipeEdgeModel, item_bytes: int) -> Network:
    count = model.layers
    sizes = [
        model.parameters_in,
        *(model.parameters_out[i % len(model.parameters_out)] for i in range(count)),
    ]
    return Network(
        name=name,
        layers=tuple(
            Layer(name=f"layer{number}", weight_bytes=ceil(memory * MEGABYTE))
            for number, memory in enumerate(model.mem_MB, start=1)
        ),
        tensors=tuple(
            Tensor(name=f"out{source + 1}", bytes=size * item_bytes, source=source, targets=(source + 1,))
            for source, size in enumerate(sizes, start=-1)
        ),
        source="models of PipeEdge",
    )


def _rows(
    chosen: Mapping[str, PipeEdgeProfile], hosts: Mapping[str, Sequence[str]]
) -> tuple[tuple[int, ...], ...]:
    columns = [
        [max(1, round(time * 1e6)) for time in profile.time_s]
        for name, profile in chosen.items()
        for _ in hosts[name]
    ]
    return tuple(zip(*columns, strict=True))


def _links(types: Mapping[str, PipeEdgeDeviceType]) -> Iterator[Link]:
    for source, one in types.items():
        for target, other in types.items():
            speed = int(min(one.bw_Mbps, other.bw_Mbps) * MEGABYTE / 8)
            yield Link(source=source, target=target, bytes_per_second=speed)


def _profiles(
    model: str, types: Mapping[str, PipeEdgeDeviceType], batch: int | None, dtype: str | None
) -> tuple[dict[str, PipeEdgeProfile], list[str]]:
    """Return the profile of each type that is meant, and the types that have none."""

    def fits(profile: PipeEdgeProfile) -> bool:
        same = dtype is None or _plain(profile.dtype) == _plain(dtype)
        return same and batch in (None, profile.batch_size)

    found = {name: [p for p in one.profiles(model) if fits(p)] for name, one in types.items()}
    kinds = sorted({(profile.dtype, profile.batch_size) for own in found.values() for profile in own})
    if not kinds:
        asked = "".join((f" of {dtype}" if dtype else "", f" with a batch of {batch}" if batch else ""))
        raise InvalidInputError(f"no device type that has hosts has a profile of {model!r}{asked}")
    if len(kinds) > 1:
        listed = ", ".join(f"{name} with a batch of {size}" for name, size in kinds)
        raise InvalidInputError(
            f"there are several profiles of {model!r}: {listed}; choose one (--dtype, --batch)"
        )
    chosen = {name: own[-1] for name, own in found.items() if own}  # PipeEdge takes the last of equal ones
    return chosen, [name for name in found if name not in chosen]


def _check(
    name: str,
    model: PipeEdgeModel,
    chosen: Mapping[str, PipeEdgeProfile],
    types: Mapping[str, PipeEdgeDeviceType],
    hosts: Mapping[str, Sequence[str]],
) -> None:
    """Refuse numbers that cannot be, and lists of the wrong length."""
    defects = Defects(f"PipeEdge's model {name!r}")
    count = model.layers
    defects.check_count("layers", count, least=1)
    defects.check_counts("parameters_out", model.parameters_out)
    defects.check_count("parameters_in", model.parameters_in)
    if not 0 < len(model.parameters_out) <= max(1, count):
        defects.add(f"parameters_out has {len(model.parameters_out)} entries, from 1 to {count} are possible")
    if len(model.mem_MB) != count:
        defects.add(f"mem_MB has {len(model.mem_MB)} entries, needs one for each of the {count} layers")
    if not all(0 <= memory <= _MOST for memory in model.mem_MB):
        defects.add("mem_MB has negative or very large entries")
    for kind, profile in chosen.items():
        if len(profile.time_s) != count:
            defects.add(f"{kind}: time_s has {len(profile.time_s)} entries, the model has {count} layers")
        if not all(0 <= time <= _MOST for time in profile.time_s):
            defects.add(f"{kind}: time_s has negative or very large entries")
        if _plain(profile.dtype) not in _DTYPE_BYTES:
            defects.add(f"{kind}: dtype {profile.dtype!r} is not known; known are {', '.join(_DTYPE_BYTES)}")
        defects.check_count(f"{kind}: batch_size", profile.batch_size, least=1)
        if not 0 <= types[kind].mem_MB <= _MOST:
            defects.add(f"{kind}: mem_MB is {types[kind].mem_MB:g}, must be from 0 to {_MOST:g}")
        if not _LEAST_MBPS <= types[kind].bw_Mbps <= _MOST:
            defects.add(f"{kind}: bw_Mbps is {types[kind].bw_Mbps:g}, must be above 0 and at most {_MOST:g}")
        if any(host in chosen and host != kind for host in hosts[kind]):
            defects.add(f"{kind}: a host is called like another device type")
    defects.raise_as(InvalidInputError)


def _plain(dtype: str) -> str:
    return dtype.removeprefix("torch.")


def _read(path: str | Path, content: type[Any], called: str) -> Any:
    """Read a YAML file into types."""
    try:
        import yaml
    except ImportError:
        raise InvalidInputError(
            f"{path} cannot be read, because PyYAML is not installed; install it with: "
            "pip install 'gapless[pipeedge]'"
        ) from None

    until = time.monotonic() + MOST_SECONDS

    class Plain(yaml.SafeLoader):  # type: ignore[misc] # the library is not typed
        """Reads values without names for parts, which can make a small file an endless one."""

        def fetch_more_tokens(self) -> Any:
            if time.monotonic() > until:
                raise InvalidInputError(
                    f"{path} takes longer to read than the {MOST_SECONDS:g} s that are allowed: make it "
                    "smaller, e.g. with only the models and device types that are needed"
                )
            return super().fetch_more_tokens()

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise InvalidInputError(f"{path} uses YAML aliases (*name), which are not read: write it out")
            node = super().compose_node(parent, index)
            if isinstance(node, yaml.ScalarNode) and len(node.value) > MOST_CHARACTERS:
                raise InvalidInputError(
                    f"{path}, line {node.start_mark.line + 1}: a value of {len(node.value)} characters, more "
                    f"than the {MOST_CHARACTERS} that are read"
                )
            return node

    data = read_bytes(path, most=MOST_BYTES)
    try:
        tree = yaml.load(data, Plain)  # a safe loader: plain values only
    except InvalidInputError:
        raise
    except Exception as error:  # PyYAML converts what tags say, and does not expect that it cannot be done
        text = " ".join(str(error).split())[:200] or type(error).__name__
        raise InvalidInputError(f"{path} is not valid YAML: {text}") from None
    if not isinstance(tree, dict):
        raise InvalidInputError(f"{path} holds no {called}: it is a {type(tree).__name__}, not a mapping")
    return parse_tree(tree, content, wrong=f"{path} is not valid as {called}:")
