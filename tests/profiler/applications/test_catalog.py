"""Applications by name: opened like built-in networks, and listed beside them."""

from __future__ import annotations

import pytest

from gapless.api.engines import engines_for
from gapless.api.models import models_of, open_model, open_models
from gapless.api.problems import load_problem
from gapless.formulations.errors import InvalidInputError, InvalidModelError
from gapless.profiler.applications.catalog import application_named, applications
from gapless.profiler.zoo.catalog import zoo_names

NAMES = [application.name for application in applications()]


def test_names_are_those_of_no_network() -> None:
    assert not set(NAMES) & set(zoo_names())
    assert application_named("alexnet") is None


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_an_application_is_a_model(name: str) -> None:
    application = application_named(name)
    assert application is not None
    model = open_model(name)
    assert model.network.name == name == application.declared().name
    assert model.network.layer_names == tuple(layer.name for layer in application.declared().layers)
    table = name.removeprefix("cifar-")
    assert model.network.layer_names == load_problem(f"pixel7a/{table}").network.layer_names
    assert engines_for(model) == ("callable",)
    assert models_of(model.network).network == model.network


@pytest.mark.slow
def test_an_application_can_have_another_name_and_company() -> None:
    assert open_model("mine=octree").network.name == "mine"
    joined = open_models(["cifar-alexnet-sparse", "tree=octree"])
    assert joined.network.layer_names[::9] == ("cifar-alexnet-sparse/conv1", "tree/morton")


def test_shapes_cannot_be_asked_for() -> None:
    with pytest.raises(InvalidInputError, match="fixed shapes"):
        open_model("octree", shapes={"points": (10, 3)})


def test_a_slip_of_the_pen_is_understood() -> None:
    with pytest.raises(InvalidModelError, match="did you mean octree"):
        open_model("octre")
