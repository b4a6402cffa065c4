"""Groups of the units of one board: what is measured for them, and what is refused before anything is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

import gapless
from gapless.api import groups as api
from gapless.executor.engines.registry import get_engine
from gapless.executor.graph.onnx_model import OnnxModel
from gapless.executor.progress import Forgetful, silent
from gapless.formulations.co_run import BUILT_IN_MODELS
from gapless.formulations.costs import CostTable, NetworkCosts, Provenance
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.groups import Cooperation
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.formulations.spatial import Axis
from gapless.profiler.profile import Method, Profile, ProfileOptions, UnitFit
from gapless.profiler.tiles import TileSample, TileTimes
from gapless.profiler.transfers import CopyModel
from tests.executor.graph.models import residual


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> OnnxModel:
    """Return a network in pieces."""
    import onnx

    path = tmp_path_factory.mktemp("model") / "net.onnx"
    onnx.save(residual(2), path)
    found = gapless.open_model(path, granularity="piece")
    assert isinstance(found, OnnxModel)
    return found


def board(*cores: tuple[int, ...]) -> Platform:
    return Platform(
        name="board", units=tuple(ProcessingUnit(name=n, cores=c) for n, c in zip("abc", cores, strict=False))
    )


def profiled(model: OnnxModel, platform: Platform) -> Profile:
    """Return a profile in which every layer takes 1 ms alone, and 2 ms beside others."""
    names, layers = platform.unit_names, len(model.network.layers)
    tables = tuple(
        CostTable(
            units=names,
            networks=(
                NetworkCosts(network=model.network.name, layer_us=((time_us,) * len(names),) * layers),
            ),
            provenance=Provenance(method=method),
        )
        for method, time_us in ((Method.ISOLATED, 1000), (Method.HEAVY, 2000))
    )
    free = CopyModel(per_tensor_us=0.0, per_mebibyte_us=0.0, error=0.0, copies=1)
    fits = tuple(
        UnitFit(unit=u, method=Method.ISOLATED, factor=1.0, overhead_us=10.0, copy_in=free, copy_out=free)
        for u in names
    )
    return Profile(
        network=model.network, platform=platform, options=ProfileOptions(), tables=tables, fits=fits
    )


def test_shares_that_do_not_depend_on_rows_are_measured(
    model: OnnxModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, tuple[tuple[int, int], ...]]] = []

    def measured(
        model: object, platform: Platform, engine: object, spans: Sequence[tuple[int, int]], **how: Any
    ) -> tuple[TileTimes, ...]:
        """Return that a quarter of the run of each piece is fixed, and 10 us are of the session."""
        (unit,) = how["units"]
        asked.append((unit, tuple(spans)))
        samples = tuple(
            TileSample(rows=r, busy_us=1.0, work=r / 12, run_us=10 + 25 + 75 * r / 12) for r in (1, 6)
        )
        return tuple(
            TileTimes(
                unit=unit, span=span, axis=Axis.ROWS, total=12, samples=samples, fixed_us=0.0, row_us=1.0,
                receipt=None,  # type: ignore[arg-type]
            )
            for span in spans
        )  # fmt: skip

    monkeypatch.setattr(api, "measure_tiles", measured)
    platform = board((0,), (1,), (0, 1))
    taken = profiled(model, platform)
    tables = {name: gapless.profiled_problem(taken, costs=name) for name in BUILT_IN_MODELS}
    engine = get_engine("onnxruntime")
    found = api.tables_of_groups(tables, taken, model, engine, "all", ledger=Forgetful(), report=silent)
    last = len(model.network.layers)
    spans = tuple((at, at + 1) for at in range(last))
    assert asked == [("a", spans), ("b", spans)]  # c has cores of both
    assert sorted(found) == ["heavy", "isolated"]
    for name, fixed_us in (("heavy", 500), ("isolated", 250)):
        data = found[name].data
        assert isinstance(data, Cooperation)
        assert data.steps
        assert data.fixed_us == ((fixed_us, fixed_us, 0),) * last
    several = {"interpolated": tables["interpolated"]}
    with pytest.raises(InvalidInputError, match="groups take one table of costs: plan with heavy"):
        api.tables_of_groups(several, taken, model, engine, "all", ledger=Forgetful(), report=silent)


def test_units_that_share_cores_are_in_no_group(model: OnnxModel) -> None:
    with pytest.raises(InvalidInputError, match="each shares cores with all others; choose others with"):
        gapless.tune(model, platform=board((0,), (0, 1)), groups="all")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"pipelines": "many"}, "pipelines race beside groups without being asked for"),
        ({"rounds": 2}, "rounds is 2: corrections are learned from plans in which each unit has layers"),
        ({"groups": "many"}, "groups is 'many', must be all, or a number"),
    ],
)
def test_what_groups_do_not_go_with_is_told(model: OnnxModel, options: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidInputError, match=told):
        gapless.tune(model, **{"groups": "all", **options})


def test_groups_are_of_pieces(model: OnnxModel) -> None:
    (ref,) = model.network.models
    network = replace(model.network, models=(replace(ref, granularity="layer"),))
    with pytest.raises(InvalidInputError, match="are layers, groups need pieces"):
        gapless.tune(replace(model, network=network), groups="all")
    with pytest.raises(InvalidInputError, match="groups are for a model, whose tiles are measured"):
        gapless.tune(gapless.load_problem("pixel7a/octree"), groups="all")
