"""Rules about operators: types, and types with attributes."""

from __future__ import annotations

import pytest

from gapless.formulations.errors import InvalidInputError
from gapless.formulations.operators import described, excluded, parse_rule


@pytest.mark.parametrize(
    ("rule", "operator", "hit"),
    [
        ("Softplus", "Softplus", True),
        ("Softplus", "Softmax", False),
        ("Conv", "Conv[kernel=3]", True),
        ("ConvTranspose[stride>=4]", "ConvTranspose[kernel=4,stride=4]", True),
        ("ConvTranspose[stride>=4]", "ConvTranspose[kernel=4,stride=2]", False),
        ("ConvTranspose[stride>=4]", "ConvTranspose", False),
        ("Conv[dilation>=2]", "Conv[stride=2]", False),
        ("Conv[kernel<=1,stride>=2]", "Conv[stride=2]", True),
        ("Conv[kernel<=1,stride>=2]", "Conv[kernel=3,stride=2]", False),
        ("Conv[stride>=4]", "Conv[stride=16]", True),
        ("Resize[mode=cubic]", "Resize[mode=cubic]", True),
        ("Resize[mode=cubic]", "Resize", False),
        ("Resize[mode=nearest]", "Resize", True),
        ("Resize[mode=cubic,stride>=2]", "Resize[mode=cubic]", False),
    ],
)
def test_rules_name_types_and_attributes(rule: str, operator: str, hit: bool) -> None:
    assert bool(excluded([operator], [rule])) == hit


def test_strange_names_in_files_are_no_rules() -> None:
    strange = "a b[;]"
    assert excluded([strange, "Erf"], ["Erf"]) == ("Erf",)


def test_usual_attributes_are_left_out() -> None:
    assert described("Conv", {"kernel": 3, "stride": 1, "group": 1}) == "Conv[kernel=3]"
    assert described("Resize", {"mode": "nearest"}) == "Resize"


@pytest.mark.parametrize(
    "rule", ["", "Conv[", "Conv[]", "Conv[colour=3]", "Conv[stride>2]", "Conv[stride>=x]"]
)
def test_what_is_no_rule_is_refused(rule: str) -> None:
    with pytest.raises(InvalidInputError):
        parse_rule(rule)
