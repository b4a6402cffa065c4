"""Ridge regression: Eq. (1) to the letter, and the form that is used."""

from __future__ import annotations

import numpy as np
import pytest

from gapless.formulations.errors import InvalidInputError
from gapless.formulations.files import Schema, dump, parse
from gapless.profiler.slowdown.contention.ridge import ALPHAS, Form, Ridge, fit_ridge

RNG = np.random.default_rng(4)
X = RNG.normal(size=(8, 3)) * [1.0, 0.1, 10.0] + [2.0, 0.3, 40.0]
Y = X @ [-0.5, 4.0, 0.02] + 1.5
ROWS, TARGETS = X.tolist(), Y.tolist()


@pytest.mark.parametrize("alpha", [0.0, 0.1, 10.0])
def test_the_printed_form_is_equation_1(alpha: float) -> None:
    found = fit_ridge(ROWS, TARGETS, alpha=alpha, form=Form.PRINTED)
    expected = np.linalg.inv(X.T @ X + alpha * np.eye(3)) @ X.T @ Y
    assert found.weights == pytest.approx(expected.tolist(), rel=1e-6)
    assert found.predict(ROWS) == pytest.approx((X @ expected).tolist(), rel=1e-6)
    assert found.offset == 0.0


def test_a_line_with_an_intercept_needs_the_centred_form() -> None:
    centred = fit_ridge(ROWS, TARGETS)
    assert centred.alpha == ALPHAS[0]
    assert centred.predict(ROWS) == pytest.approx(TARGETS, abs=1e-3)
    assert (centred.error or 1) < 0.01 < (fit_ridge(ROWS, TARGETS, form=Form.PRINTED).error or 0)


def test_units_of_the_features_do_not_matter_in_the_centred_form() -> None:
    scaled = (X * [1000.0, 1.0, 0.001]).tolist()
    for form, same in ((Form.CENTRED, True), (Form.PRINTED, False)):
        one, other = (fit_ridge(rows, TARGETS, alpha=1.0, form=form).predict(rows) for rows in (ROWS, scaled))
        assert np.allclose(one, other, atol=1e-9) is same


def test_leave_one_out_prefers_the_mean_where_features_tell_nothing() -> None:
    noise = np.random.default_rng(1).normal(size=8).tolist()
    found = fit_ridge(ROWS, noise)
    assert found.alpha >= 100
    assert found.predict(ROWS) == pytest.approx([float(np.mean(noise))] * 8, abs=0.2)


def test_the_error_is_that_of_left_out_rows() -> None:
    found = fit_ridge(ROWS, TARGETS, alpha=1.0)
    errors = []
    for row in range(8):
        rest = [r for r in range(8) if r != row]
        other = fit_ridge([ROWS[r] for r in rest], [TARGETS[r] for r in rest], alpha=1.0)
        errors.append(other.predict([ROWS[row]])[0] - TARGETS[row])
    assert found.error == pytest.approx(float(np.sqrt(np.mean(np.square(errors)))))


def test_few_or_equal_rows_are_no_trouble() -> None:
    assert fit_ridge([[1.0, 2.0, 3.0]], [5.0]).predict([[9.0, 9.0, 9.0]]) == (5.0,)
    assert fit_ridge([[1.0, 2.0]] * 4, [1.0, 2.0, 3.0, 4.0]).predict([[1.0, 2.0]]) == pytest.approx((2.5,))
    assert fit_ridge([[1.0], [2.0]], [1.0, 2.0]).error is None
    assert fit_ridge([[1.0, 1.0]] * 3, [2.0] * 3, alpha=0.0, form=Form.PRINTED).predict([[1.0, 1.0]]) == (
        pytest.approx((2.0,))
    )


@pytest.mark.parametrize(
    ("rows", "targets", "alpha", "words"),
    [
        ([], [], None, "one of each"),
        ([[1.0]], [1.0, 2.0], None, "one of each"),
        ([[1.0], [1.0, 2.0]], [1.0, 2.0], None, r"lengths \[1, 2\]"),
        ([[float("nan")]], [1.0], None, "finite"),
        ([[1.0]], [1.0], -1.0, "alpha is -1.0"),
    ],
)
def test_bad_input_is_named(
    rows: list[list[float]], targets: list[float], alpha: float | None, words: str
) -> None:
    with pytest.raises(InvalidInputError, match=words):
        fit_ridge(rows, targets, alpha=alpha)
    with pytest.raises(InvalidInputError, match="must have 3"):
        fit_ridge(ROWS, TARGETS).predict([[1.0]])


def test_a_regression_survives_its_file() -> None:
    schema = Schema(format="test.ridge", version=1, content=Ridge)
    found = fit_ridge(ROWS, TARGETS)
    assert parse(dump(found, schema).encode(), schema, name="x") == found
