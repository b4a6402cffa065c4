"""Contention: measure how much networks slow each other down on this device."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from ...executor.engine import Engine
from ...executor.model import Model
from ...executor.progress import Report, silent
from ...executor.tuning.store import Store
from ...formulations.errors import InvalidInputError
from ...formulations.hardware import Platform
from ...formulations.network import Network
from ...profiler.platforms.phone_estimates import MEASURED_ON, EstimatedContention
from ...profiler.platforms.phone_estimates import estimate_contention as estimate
from ...profiler.platforms.workloads import phone_network, phone_network_names
from ...profiler.slowdown.contention.measure import measure_contention as measure
from ...profiler.slowdown.contention.result import Contention, ContentionOptions
from ...profiler.slowdown.contention.ridge import Form
from ..execution import open_ledger, resolve_all
from ..models import open_model


def measure_contention(
    models: Sequence[Model | str | Path],
    *,
    platform: Platform | None = None,
    engine: str | Engine | None = None,
    options: ContentionOptions = ContentionOptions(),
    estimated: Sequence[Model | str | Path] = (),
    store: Store | str | Path = ":memory:",
    resume: bool = False,
    report: Report = silent,
) -> Contention:
    """Measure how much networks on different units slow each other down, and how they press on memory.

    Parameters
    ----------
    models
        The networks, as `open_model` returns them, or their locators.
    platform
        The units; None: this device, as `this_device` finds it.
    engine
        Who runs the layers; None: MNN for ONNX files, "callable" for Python functions.
    options
        How long to measure, and what.
    estimated
        Further networks, which run alone only: their intensities follow from performance counters, by Eq. (1)
        of Hetero2Pipe as fitted to `models`.
    store, resume, report
        As for `measure_interference`.

    Returns
    -------
    Contention
        Its `interference` belongs to a problem with several networks.

    Raises
    ------
    InvalidInputError
        A model, unit or option is not valid, or no two units can run at once.
    ProfilingError, ExecutionError
        It could not be measured.

    Examples
    --------
    >>> import gapless
    >>> found = gapless.costs.measure_contention(["squeezenet", "resnet18"])  # doctest: +SKIP
    >>> found.interference.slowdown_permille  # doctest: +SKIP
    ((0, 42, 0), (36, 0, 0), (0, 0, 0))
    """
    opened, found, units = resolve_all([*models, *estimated], engine, platform)
    if len({unit.engine.name for unit in units.units}) > 1:
        raise InvalidInputError(
            f"the units of {units.name!r} are for several engines, and contention is measured by one: name it"
        )
    measured, others = opened[: len(models)], opened[len(models) :]
    with ExitStack() as stack:
        ledger = open_ledger(store, stack, resume=resume)
        return measure(
            measured, units, found, options=options, estimated=others, ledger=ledger, report=report
        )


def estimate_contention(
    networks: Sequence[Network | Model | str | Path] = (),
    *,
    platform: str = MEASURED_ON,
    form: str = Form.CENTRED,
    parts: int = 0,
) -> EstimatedContention:
    """Estimate how networks, and their layers or parts, press on the memory of a shipped phone.

    Parameters
    ----------
    networks
        Names of the ten shipped networks, or any others as for `open_model`; none: the ten.
    platform
        A phone, see `gapless list problems`.
    form
        What Hetero2Pipe's Eq. (1) is applied to: "printed", features as they are, or "centred" and scaled.
    parts
        In how many parts each network is looked at; 0: each layer by itself.

    Raises
    ------
    InvalidInputError
        There is no such phone, form or network, or how many operations a layer has is not known.

    Examples
    --------
    >>> import gapless
    >>> found = gapless.costs.estimate_contention(["vgg16"])
    >>> [(part.first, part.high) for part in found.parts][-3:]
    [('conv5_3', False), ('fc6', True), ('fc7', True)]
    """
    if form not in tuple(Form):
        raise InvalidInputError(f"form is {form!r}, must be one of {', '.join(Form)}")
    named = networks or phone_network_names()
    return estimate(list(map(_described, named)), platform=platform, form=Form(form), parts=parts)


def _described(network: Network | Model | str | Path) -> Network:
    if isinstance(network, Network):
        return network
    if network in phone_network_names():
        return phone_network(str(network))
    return open_model(network).network if isinstance(network, str | Path) else network.network
