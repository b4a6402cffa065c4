"""The page in a browser: its script runs without errors, and does what the keyboard and the pointer ask."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gapless.sweeps.run import SweepResult
from gapless.sweeps.spec import Sweep
from gapless.view.page.page import report_page
from gapless.view.page.results import sweep_page
from tests.gapless.view.page import samples
from tests.gapless.view.page.test_sweep import ROWS

BROWSER = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-browser")

pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs chromium or google-chrome on the PATH")

Open = Callable[..., dict[str, Any]]


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    """Open a page, perform JavaScript that puts what it finds into `found`, and return that."""

    def run(page: str, script: str = "", width: int = 1200) -> dict[str, Any]:
        path = tmp_path / "report.html"
        act = (
            "<script>const found = {};\n"
            # A loaded machine may run this before the window has the focus, when nobody is told of `focus()`.
            "const focus = SVGElement.prototype.focus;\n"
            "SVGElement.prototype.focus = function (...how) { focus.apply(this, how); "
            "if (!document.hasFocus()) this.dispatchEvent(new FocusEvent('focusin', { bubbles: true })); };\n"
            "const all = query => [...document.querySelectorAll(query)];\n"
            "const key = name => document.activeElement.dispatchEvent("
            "new KeyboardEvent('keydown', { key: name, bubbles: true, cancelable: true }));\n"
            "const tip = () => document.getElementById('tip').hidden ? null : Object.fromEntries("
            "all('#tip dt').map(name => [name.textContent, name.nextSibling.textContent]));\n"
            f"{script}\ndocument.body.dataset.found = JSON.stringify(found);</script>"
        )
        path.write_text(page.replace("</body>", f"{act}</body>"))
        assert BROWSER is not None
        done = subprocess.run(
            [
                BROWSER,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                f"--user-data-dir={tmp_path / 'profile'}",
                f"--window-size={width},900",
                "--enable-logging=stderr",
                "--virtual-time-budget=2000",
                "--dump-dom",
                path.as_uri(),
            ],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        assert "CONSOLE" not in done.stderr, done.stderr
        body = re.search(r"<body([^>]*)>", done.stdout)
        assert body is not None
        assert 'data-ready="yes"' in body[1]
        assert "data-error" not in body[1]
        text = re.search(r'data-found="([^"]*)"', body[1])
        assert text is not None, "the script of the test has failed"
        found: dict[str, Any] = json.loads(html.unescape(text[1]))
        return found

    return run


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["workload", "raced", "steady", "over devices", "hostile", "hostile requests"]
)
def test_pages_open_without_errors(opened: Open, name: str) -> None:
    found = opened(
        report_page([samples.SAMPLES[name]()]),
        """
        found.wide = document.documentElement.scrollWidth > innerWidth; found.title = document.title;
        found.ticks = 0; found.overlaps = [];
        for (const chart of all('.plot > svg, .bars svg.axis')) {
          const boxes = [...chart.querySelectorAll('text:not(.name)')]
            .map(text => [text.textContent, text.getBoundingClientRect()]).filter(([, box]) => box.width);
          found.ticks += boxes.length;
          boxes.forEach(([one, a], n) => boxes.slice(n + 1).forEach(([other, b]) => {
            if (a.left < b.right && b.left < a.right && a.top < b.bottom - 3 && b.top < a.bottom - 3) {
              found.overlaps.push([one, other]);
            }
          }));
        }
        """,
        width=500,
    )
    assert found["wide"] is False
    assert found["ticks"] > 4 or name.startswith("hostile")
    assert found["overlaps"] == []
    if name.startswith("hostile"):
        assert found["title"].startswith(samples.HOSTILE)


@pytest.mark.slow
def test_messages_say_on_which_link_they_are(opened: Open) -> None:
    found = opened(
        report_page([samples.over_devices()]),
        """
        const links = all('.row.link'), marks = [...links[0].querySelectorAll('.b')];
        found.links = links.length;
        document.querySelector('.canvas [tabindex="0"]').focus();
        found.first = tip();
        key('ArrowDown'); found.below = tip();
        found.labels = all('.labels text').filter(text => marks.some(mark =>
          Math.abs(Number(text.getAttribute('y')) - Number(mark.getAttribute('y')) - 14) < 3)).length;
        """,
    )
    assert found["links"] == 7
    assert found["first"]["link"] == "pi-3 -> xavier"
    assert {"unit", "layers", "slowdown"}.isdisjoint(found["first"])
    assert found["below"]["unit"] == "xavier"
    assert found["labels"] == 0


@pytest.mark.slow
def test_arrow_keys_walk_from_block_to_block(opened: Open) -> None:
    subject = samples.long()
    assert subject.predicted is not None
    found = opened(
        report_page([subject]),
        """
        const blocks = all('.canvas .b');
        found.blocks = blocks.length;
        const stops = () => all('.canvas [tabindex="0"]').length;
        found.before = stops();
        document.querySelector('.canvas [tabindex="0"]').focus();
        found.first = tip();
        key('ArrowRight'); found.right = tip();
        key('ArrowDown'); found.down = tip();
        key('End'); found.end = tip();
        key('ArrowRight'); found.beyond = tip();
        key('Home'); found.home = tip();
        for (let n = 0; n < 20; n++) key('ArrowDown');
        found.last = tip();
        key('ArrowUp'); found.up = tip();
        found.label = document.activeElement.getAttribute('aria-label');
        found.after = stops();
        key('Escape'); found.escape = tip();
        """,
    )
    assert found["blocks"] == 2 * 300 * 8
    assert (found["before"], found["after"]) == (1, 1)
    assert found["first"] == {
        "trace": "predicted",
        "request": "0",
        "network": "deep",
        "layers": "0-2 (layer0 to layer2)",
        "unit": "unit0",
        "start": "0 us",
        "end": found["first"]["takes"],
        "takes": found["first"]["takes"],
        "slowdown": "none",
    }
    assert [found["right"][name] for name in ("request", "unit")] == ["1", "unit0"]
    assert found["down"]["unit"] == "unit1"
    assert found["end"]["request"] == found["beyond"]["request"] == "299"
    assert found["home"]["request"] == "0"
    assert (found["last"]["trace"], found["last"]["unit"]) == ("measured", "unit7")
    assert {"copy in", "run", "copy out"} <= set(found["last"])
    assert found["up"]["unit"] == "unit6"
    assert found["label"].startswith("trace measured, request")
    assert found["escape"] is None


@pytest.mark.slow
def test_the_chart_zooms(opened: Open) -> None:
    found = opened(
        report_page([samples.long()]),
        """
        const width = () => document.querySelector('.canvas').getBoundingClientRect().width;
        const button = name => document.querySelector(`[data-zoom=${name}]`);
        const dense = () => document.querySelector('.lanes').classList.contains('dense');
        found.before = [width(), all('.labels text').length, dense(), button('out').disabled];
        for (let n = 0; n < 6; n++) button('in').click();
        found.inside = [width(), all('.labels text').length, dense(), button('out').disabled];
        found.ticks = all('.axis text').length;
        document.querySelector('.canvas [tabindex="0"]').focus();
        key('-'); found.out = width();
        key('0'); found.all = width();
        for (let n = 0; n < 40; n++) key('+');
        found.most = [width(), button('in').disabled, all('.labels text').length, all('.axis text').length];
        """,
    )
    width, labels, dense, stopped = found["before"]
    assert (dense, stopped) == (True, True)
    assert labels == 0
    assert found["inside"][0] == pytest.approx(64 * width, rel=0.01)
    assert found["inside"][1] > 20
    assert found["inside"][2:] == [False, False]
    assert 2 <= found["ticks"] <= 40
    assert found["out"] == pytest.approx(32 * width, rel=0.01)
    assert found["all"] == pytest.approx(width, rel=0.01)
    assert found["most"][1] is True
    assert found["most"][2] < 400
    assert found["most"][3] < 60


@pytest.mark.slow
def test_the_pointer_shows_blocks_and_bubbles(opened: Open) -> None:
    subject = samples.small()
    assert subject.predicted is not None
    found = opened(
        report_page([subject]),
        """
        const row = document.querySelector('.row'), blocks = [...row.querySelectorAll('.b')];
        const over = (element, x) => element.dispatchEvent(
          new PointerEvent('pointermove', { bubbles: true, clientX: x, clientY: 0 }));
        const box = blocks[2].getBoundingClientRect(), idle = row.querySelector('.idle');
        over(blocks[2], box.left + 1); found.block = tip();
        over(idle, box.right + 2); found.bubble = tip();
        document.querySelector('.canvas').dispatchEvent(new PointerEvent('pointerleave')); found.away = tip();
        """,
    )
    first, second = (event for event in subject.predicted.on("Big") if event.request in (2, 3))
    assert found["block"]["request"] == "2"
    assert found["block"]["start"] == f"{first.start_us / 1000:.3f} ms"
    assert found["bubble"]["bubble"] == f"{(second.start_us - first.end_us) / 1000:.3f} ms"
    assert found["bubble"]["between"] == "2 and 3"
    assert found["away"] is None


@pytest.mark.slow
def test_the_way_of_a_request_over_the_units_stands_out(opened: Open) -> None:
    subject = samples.workload()
    assert subject.predicted is not None
    found = opened(
        report_page([subject]),
        """
        const blocks = all('.row.predicted .b'), svg = document.querySelector('.canvas');
        const clear = () => blocks.filter(block =>
          !block.classList.contains('faded') && !block.classList.contains('beside')).length;
        const over = element => element.dispatchEvent(new PointerEvent('pointermove', { bubbles: true }));
        found.all = clear();
        over(blocks[0]); found.name = tip().request; found.one = clear();
        svg.dispatchEvent(new PointerEvent('pointerleave')); found.left = clear();
        blocks[0].focus(); found.focused = clear();
        over(blocks[0]); svg.dispatchEvent(new PointerEvent('pointerleave')); found.still = clear();
        document.activeElement.blur(); found.blurred = clear();
        """,
    )
    names = [subject.predicted.names[event.stream] for event in subject.predicted.events]
    own = names.count(found["name"])
    assert 0 < own < len(names)
    assert found == {
        "all": len(names),
        "left": len(names),
        "blurred": len(names),
        "name": found["name"],
    } | dict.fromkeys(("one", "focused", "still"), own)


@pytest.mark.slow
def test_keys_follow_a_request_with_what_it_waited_for_and_who_was_beside_it(opened: Open) -> None:
    subject = samples.returning()
    assert subject.predicted is not None
    found = opened(
        report_page([subject]),
        """
        const svg = document.querySelector('.canvas');
        const count = name => all(`.row.predicted .b.${name}`).length;
        const button = all('[data-stream]').find(one => one.textContent.trim() === 'bert');
        button.focus(); button.click();
        found.chosen = [button.getAttribute('aria-pressed'), count('faded'), count('beside')];
        found.hops = all('.way .hop').length; found.waits = all('.way .wait').length;
        svg.dispatchEvent(new PointerEvent('pointerleave')); found.kept = count('faded');
        button.click();
        found.released = [button.getAttribute('aria-pressed'), count('faded'), all('.way line').length];
        document.querySelector('.canvas [tabindex="0"]').focus();
        while (tip().request !== 'bert') key('ArrowRight');
        for (let n = 0; n < 99; n++) key('p');
        found.way = [];
        for (let before = null; before !== document.activeElement; key('n')) {
          before = document.activeElement;
          found.way.push({ ...tip(), company: count('beside'), faded: count('faded') });
        }
        """,
    )
    trace = subject.predicted
    events = [event for event in trace.events if trace.names[event.stream] == "bert"]
    others = len(trace.events) - len(events)
    assert found["chosen"] == ["true", others, 0]
    assert found["kept"] == others
    assert found["released"] == ["false", 0, 0]
    assert found["hops"] == len(events) - 1
    assert found["waits"] == sum(step["waited"] != "not at all" for step in found["way"]) > 0
    assert [step["unit"] for step in found["way"]] == [event.unit for event in events]
    assert {step["request"] for step in found["way"]} == {"bert"}
    slowed = [step["slowdown"] != "none" for step in found["way"]]
    assert slowed == [event.slowdown_ns > 0 for event in events]
    for event, step in zip(events, found["way"], strict=True):
        _, _, names = step["waited"].partition(", for ")
        ready_us = max((other.end_us for other in events if other.chunk < event.chunk), default=0)
        held = {
            trace.names[other.stream]
            for other in trace.on(event.unit)
            if other.start_us < event.start_us and other.end_us > ready_us
        }
        assert set(filter(None, names.split(", "))) == held
    assert slowed == ["costs" in step.get("beside", "") for step in found["way"]]
    assert all(step["company"] + step["faded"] == others for step in found["way"])
    assert all(bool(step["company"]) == ("beside" in step) for step in found["way"])


@pytest.mark.slow
def test_slowdown_and_requests_of_a_workload_are_shown(opened: Open) -> None:
    subject = samples.workload()
    assert subject.predicted is not None
    found = opened(
        report_page([subject]),
        """
        found.tips = all('.row.predicted .b').map(block => {
          block.setAttribute('tabindex', '0'); block.focus(); return tip();
        });
        """,
    )
    slowed = {tip["request"] for tip in found["tips"] if tip["slowdown"] != "none"}
    names = subject.predicted.names
    assert slowed == {names[event.stream] for event in subject.predicted.events if event.slowdown_us}
    assert {tip["request"] for tip in found["tips"]} == set(names)
    assert all("stream" not in tip for tip in found["tips"])


@pytest.mark.slow
def test_the_scatter_is_walked_by_keys_and_the_theme_is_toggled(opened: Open) -> None:
    subject = samples.raced()
    assert subject.tuning is not None
    found = opened(
        report_page([subject]),
        """
        const marks = all('.plane.scatter .m');
        found.marks = marks.length;
        document.querySelector('.plane.scatter [tabindex="0"]').focus(); found.first = tip();
        key('End'); found.last = tip();
        const theme = document.getElementById('theme');
        found.light = [document.documentElement.dataset.theme || '', theme.textContent];
        theme.click();
        found.dark = [document.documentElement.dataset.theme, theme.textContent,
          getComputedStyle(document.body).backgroundColor];
        """,
    )
    assert found["marks"] == 2 * len(subject.tuning.rows)
    assert {"candidate", "chunks", "measured", "difference", "outcome"} <= set(found["first"])
    assert found["first"] != found["last"]
    assert found["light"] == ["", "Dark"]
    assert found["dark"] == ["dark", "Light", "rgb(15, 18, 23)"]


@pytest.mark.slow
def test_the_curves_of_backends_are_walked_by_keys(opened: Open) -> None:
    found = opened(
        report_page([samples.SAMPLES["workload"]()]),
        """
        found.marks = all('.lines:not(.flat) .m').length;
        found.lines = all('.plane.lines:not(.flat) .lines path').length;
        document.querySelector('.lines:not(.flat) [tabindex="0"]').focus(); found.first = tip();
        key('End'); found.last = tip();
        """,
    )
    # Two better plans and two better bounds, the first of them borrowed: a line each for all three.
    assert (found["marks"], found["lines"]) == (4, 3)
    assert found["first"] == {
        "backend": "native",
        "plan": "1,328.226 ms",
        "after": "100.0 ms",
        "source": "its own",
    }
    assert found["last"] == {
        "backend": "native",
        "bound": "789.659 ms",
        "after": "1.40 s",
        "source": "its own",
    }


@pytest.mark.slow
def test_the_proofs_of_a_sweep_are_walked_by_keys(opened: Open) -> None:
    found = opened(
        sweep_page(SweepResult(sweep=Sweep(problems=("x",)), rows=ROWS, total=6)),
        """
        found.marks = all('.plot .m').length;
        document.querySelector('.plot [tabindex="0"]').focus(); found.first = tip();
        key('End'); found.last = tip();
        """,
    )
    assert found["marks"] == 4
    assert (found["first"]["size"], found["last"]["size"]) == ("8 layers x 4 units", "300 layers x 4 units")


@pytest.mark.slow
def test_notes_of_narrow_tables_stand_below_their_values(opened: Open) -> None:
    found = opened(
        sweep_page(SweepResult(sweep=Sweep(problems=("x",)), rows=ROWS, total=6)),
        """
        const note = document.querySelector('.many td > .tag + .aside');
        found.left = [note, note.previousElementSibling].map(one => one.getBoundingClientRect().left);
        """,
        width=500,
    )
    assert found["left"][0] == found["left"][1]


@pytest.mark.slow
def test_all_blocks_are_listed_when_asked_for(opened: Open) -> None:
    found = opened(
        report_page([samples.measured()]),
        """
        const details = document.querySelector('[data-table$="-data"]');
        details.open = true;
        details.dispatchEvent(new Event('toggle'));
        found.rows = all('.blocks tbody tr').length;
        found.cells = [...new Set(all('.blocks tr').map(row => row.children.length))];
        found.titles = all('.blocks th').map(cell => cell.textContent);
        """,
    )
    assert found["rows"] == 2 * 20 * 4
    assert {"request", "layers", "start", "end", "slowdown", "copy in"} <= set(found["titles"])
    assert found["cells"] == [len(found["titles"])]
