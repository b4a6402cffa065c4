from __future__ import annotations

import pytest

from gapless.formulations.errors import InvalidInputError
from gapless.formulations.workload import RequestOrder
from gapless.question.values import (
    DEADLINES,
    DEVICES,
    ENERGIES,
    ENERGY,
    LIST,
    PERCENT,
    SHAPES,
    SHARE,
    SIZE,
    SIZES,
    TIME,
    TIMES,
    WINDOWS,
    Form,
    Place,
    amount_words,
    choice_form,
    count_form,
    number_form,
)

OPTION = Place("--max-latency")
RATIO = number_form("NUMBER", 0, 100)


@pytest.mark.parametrize(
    ("form", "text", "value"),
    [
        (TIME, "30ms", 30_000),
        (TIME, "1.5 s", 1_500_000),
        (TIME, "7us", 7),
        (TIME, "0", 0),
        (ENERGY, "2.5mJ", 2_500_000),
        (SIZE, "2GiB", 2**31),
        (SIZE, "2GB", 2 * 10**9),
        (PERCENT, "62.5%", 625),
        (count_form(), "12", 12),
        (DEVICES, "pi5=2,pi4=0", {"pi5": 2, "pi4": 0}),
        (SHAPES, "x=1,3,480,640 y=2", {"x": (1, 3, 480, 640), "y": (2,)}),
        (WINDOWS, "bert=20ms..0.5s vit=..90.5ms", {"bert": (20_000, 500_000), "vit": (0, 90_500)}),
        (choice_form(RequestOrder), "fixed", RequestOrder.FIXED),
        (LIST, "core0, core1", ("core0", "core1")),
        (SHARE, "100%", 1000),
        (DEADLINES, "net=1us other=2ms", {"net": 1, "other": 2000}),
        (RATIO, "1e-1", 0.1),
        (RATIO, " .5", 0.5),
    ],
)
def test_a_value_is_read_and_what_files_keep_of_it_means_the_same(
    form: Form, text: str, value: object
) -> None:
    found = form.read(OPTION, text)
    assert found == value
    assert form.read(Place("key", bare=True), form.write(found)) == value


@pytest.mark.parametrize(
    ("form", "text", "words"),
    [
        (TIME, "30", "--max-latency: '30' has no unit (us, ms, s), e.g. 30ms"),
        (TIME, "30mm", "'30mm' has an unknown unit 'mm'; choose one of us, ms, s"),
        (TIME, "1.0001ms", "--max-latency is '1.0001ms', must be a whole number of us"),
        (TIME, "-3ms", "--max-latency is '-3ms', must be a time with its unit, e.g. 30ms"),
        (TIME, "٣ms", "must be a time"),
        (SIZE, "2", "has no unit (B, kB, MB, GB, KiB, MiB, GiB)"),
        (PERCENT, "80", "must be a percentage with at most one decimal, e.g. 80% or 62.5%"),
        (count_form(), "0", "--max-latency is 0, must be at least 1"),
        (count_form(0), "x", "--max-latency is 'x', must be a whole number"),
        (count_form(0), "1" * 16, "must be a whole number"),
        (WINDOWS, "bert=20..500", "'20' has no unit"),
        (WINDOWS, "bert=1ms..2ms bert=3ms..", "once per request"),
        (WINDOWS, "bert", "must be NAME=FROM..TO"),
        (LIST, "", "--max-latency is '', must be one name, or several with a comma between two"),
        (LIST, ",", "is ',', must be one name"),
        (LIST, "core0,,core1", "is 'core0,,core1', must be one name"),
        (SHARE, "100.1%", "--max-latency is 100.1%, must be at most 100%"),
        (DEADLINES, "net=0", "--max-latency is '0', must be at least 1us"),
        (DEADLINES, "net=0ms", "must be at least 1us"),
        (RATIO, "1_0", "--max-latency is '1_0', must be a number"),
        (RATIO, "٣", "must be a number"),
        (RATIO, "inf", "must be a number"),
        (RATIO, "1e999", "must be a number"),
        (choice_form(RequestOrder), "fre", "--max-latency is 'fre'; did you mean free?"),
    ],
)
def test_an_error_names_the_place_the_value_and_what_is_right(form: Form, text: str, words: str) -> None:
    with pytest.raises(InvalidInputError) as error:
        form.read(OPTION, text)
    assert words in str(error.value)
    assert str(error.value).startswith("--max-latency")


def test_the_key_of_a_file_may_name_the_unit_of_a_bare_number() -> None:
    key = Place("max_latency_us", bare=True)
    assert TIME.read(key, "7000") == TIME.read(key, "7ms") == 7000
    assert WINDOWS.read(Place("window", bare=True), "bert=20..500") == {"bert": (20_000, 500_000)}, "in ms"


def test_an_amount_is_told_in_the_largest_unit_that_is_exact() -> None:
    assert [amount_words(value, TIMES) for value in (0, 7, 1000, 1500, 2_000_000)] == [
        "0",
        "7us",
        "1ms",
        "1500us",
        "2s",
    ]
    assert amount_words(2**31, SIZES) == "2GiB"
    assert amount_words(3 * 10**9, SIZES) == "3GB"
    assert amount_words(5_000_000, ENERGIES) == "5mJ"
