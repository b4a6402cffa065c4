(() => {
"use strict";
const body = document.body, tip = document.getElementById("tip");
const SVG = "http://www.w3.org/2000/svg";
const STEPS = [1, 2, 5, 10];
addEventListener("error", event => { body.dataset.error = event.message; });

const make = (name, text) => {
  const element = document.createElement(name);
  if (text !== undefined) element.textContent = text;
  return element;
};
const draw = (name, values, text) => {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(values)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
};
const data = id => JSON.parse(document.getElementById(id).textContent);
const millis = us => us >= 1000
  ? (us / 1000).toLocaleString("en", { minimumFractionDigits: 3, maximumFractionDigits: 3 }) + " ms"
  : us.toLocaleString("en", { maximumFractionDigits: 1 }) + " us";

/* The tip: what is known of the block under the pointer, or of the one in focus. */
let pinned = null;
const hide = () => { tip.hidden = true; pinned = null; };
const show = (facts, box) => {
  const list = make("dl");
  for (const [name, value] of facts) list.append(make("dt", name), make("dd", value));
  tip.replaceChildren(list);
  tip.hidden = false;
  const size = tip.getBoundingClientRect(), gap = 8;
  const left = Math.min(Math.max(gap, box.left + box.width / 2 - size.width / 2), innerWidth - size.width - gap);
  const below = box.bottom + gap + size.height <= innerHeight;
  tip.style.left = `${Math.max(gap, left)}px`;
  tip.style.top = `${below ? box.bottom + gap : Math.max(gap, box.top - gap - size.height)}px`;
};
addEventListener("keydown", event => { if (event.key === "Escape") hide(); });
const pin = (facts, mark) => { show(facts, mark.getBoundingClientRect()); pinned = { facts, mark }; };
/* What is in focus keeps its tip while the page moves; what is under the pointer does not stay there. */
const moved = () => { if (pinned) pin(pinned.facts, pinned.mark); else hide(); };
addEventListener("scroll", moved, { passive: true });

/* Marks that arrow keys walk through: only one of them is a tab stop. */
class Walk {
  constructor(rows, facts) {
    this.rows = rows;
    this.facts = facts;
    this.place = new Map();
    rows.forEach((row, y) => row.forEach((mark, x) => this.place.set(mark, [y, x])));
    const first = rows.find(row => row.length);
    if (first) this.stop(first[0]);
  }
  stop(mark) {
    if (this.current) this.current.setAttribute("tabindex", "-1");
    this.current = mark;
    mark.setAttribute("tabindex", "0");
    if (mark.hasAttribute("aria-label")) return;
    mark.setAttribute("role", "img");
    mark.setAttribute("aria-label", this.facts(mark).map(fact => fact.join(" ")).join(", "));
  }
  go(mark) {
    this.stop(mark);
    mark.focus({ preventScroll: true });
    mark.scrollIntoView({ block: "nearest", inline: "nearest" });
    pin(this.facts(mark), mark);
  }
  key(name, mark) {
    const [y, x] = this.place.get(mark), row = this.rows[y];
    const next = {
      ArrowRight: () => row[Math.min(x + 1, row.length - 1)],
      ArrowLeft: () => row[Math.max(x - 1, 0)],
      Home: () => row[0],
      End: () => row[row.length - 1],
      ArrowDown: () => this.near(y, 1, mark),
      ArrowUp: () => this.near(y, -1, mark),
    }[name];
    if (!next) return false;
    this.go(next());
    return true;
  }
  near(y, step, mark) {
    let to = y + step;
    while (this.rows[to] && !this.rows[to].length) to += step;
    if (!this.rows[to]) return mark;
    const middle = element => { const box = element.getBoundingClientRect(); return box.left + box.width / 2; };
    const wanted = middle(mark), row = this.rows[to];
    let low = 0, high = row.length - 1;
    while (low < high) {
      const half = (low + high) >> 1;
      if (middle(row[half]) < wanted) low = half + 1; else high = half;
    }
    const before = row[low - 1];
    return before && wanted - middle(before) < middle(row[low]) - wanted ? before : row[low];
  }
  listen(svg) {
    svg.addEventListener("keydown", event => {
      if (this.place.has(event.target) && !event.ctrlKey && !event.metaKey && !event.altKey
        && this.key(event.key, event.target)) event.preventDefault();
    });
    svg.addEventListener("focusin", event => {
      if (!this.place.has(event.target)) return;
      this.stop(event.target);
      pin(this.facts(event.target), event.target);
    });
    svg.addEventListener("focusout", hide);
    svg.addEventListener("pointerleave", () => { if (!pinned) hide(); });
    svg.addEventListener("click", event => {
      const mark = this.of(event.target);
      if (mark) this.go(mark);
    });
  }
  of(element) {
    for (let at = element; at && at.nodeName !== "figure"; at = at.parentNode) if (this.place.has(at)) return at;
    return null;
  }
}

/* Gantt charts. A block is four numbers (request, chunk, start, length) or, where copies are known, six
   (request, chunk, start, copy in, run, copy out), in microseconds. */
class Timeline {
  constructor(figure) {
    this.figure = figure;
    this.data = data(figure.dataset.timeline);
    this.scroll = figure.querySelector(".scroll");
    this.svg = figure.querySelector(".canvas");
    this.lanes = figure.querySelector(".lanes");
    this.axis = figure.querySelector(".axis");
    this.labels = figure.querySelector(".labels");
    this.lines = [...figure.querySelectorAll(".row")];
    this.zoom = 1;
    this.blocks = new Map();
    this.followed = null;
    const rows = this.lines.map(line => [...line.querySelectorAll(".b")]);
    this.data.bands.forEach((band, b) => {
      band.marks = [];
      band.rows.forEach((numbers, r) => rows[b * this.data.units.length + r].forEach((mark, n) => {
        const line = this.lines[b * this.data.units.length + r], y = Number(mark.getAttribute("y")) + 10;
        this.blocks.set(mark, { ...this.block(band, r, numbers, n * band.size), line, y });
        band.marks.push(mark);
      }));
    });
    this.rows = rows;
    this.most = this.most_zoom();
    this.height = Number(this.axis.querySelector("line").getAttribute("y2"));
    this.ring = draw("rect", { class: "ring", width: 0, height: 24, visibility: "hidden", rx: 2 });
    this.way = draw("g", { class: "way" });
    this.svg.append(this.way, this.ring);
    this.chosen = null;
    this.walk = new Walk(rows, mark => this.facts(this.blocks.get(mark)));
    this.walk.listen(this.svg);
    this.listen();
    this.refresh();
  }
  block(band, unit, numbers, at) {
    const [request, chunk, start, ...times] = numbers.slice(at, at + band.size);
    const copied = band.size === 6, place = band.marks.length;
    const length = copied ? times[0] + times[1] + times[2] : times[0];
    const stream = this.data.chunks[chunk][0];
    return { band, unit, request, chunk, stream, start, length, times, copied, place, wait: band.waits[place] };
  }
  /* Who ran on other units at the same time and takes speed from it: [block, time together, what it costs]. */
  company(block) {
    const list = block.band.beside[block.place], found = [];
    for (let n = 0; n < list.length; n += 2) {
      const other = this.blocks.get(block.band.marks[list[n]]);
      const end = Math.min(block.start + block.length, other.start + other.length);
      found.push([other, end - Math.max(block.start, other.start), list[n + 1]]);
    }
    return found;
  }
  /* Who had the unit while a block waited for it. */
  before(block) {
    const names = this.rows[this.lines.indexOf(block.line)].map(mark => this.blocks.get(mark))
      .filter(other => other.start < block.start && other.start + other.length > block.start - block.wait)
      .map(other => this.name(other));
    return [...new Set(names)].join(", ");
  }
  own(block) {
    return block.band.marks.map(mark => this.blocks.get(mark))
      .filter(other => other.stream === block.stream && other.request === block.request)
      .sort((a, b) => a.start - b.start || a.chunk - b.chunk);
  }
  name(block) {
    return this.data.alone ? this.data.names[block.stream] : String(block.request);
  }
  facts(block) {
    const [, network, layers] = this.data.chunks[block.chunk];
    const name = this.data.names[block.stream], many = this.data.names.length > 1;
    const facts = [["trace", block.band.title], ["request", this.name(block)]];
    if (!this.data.alone && many) facts.push(["stream", name]);
    const link = this.data.links.includes(block.unit);
    facts.push(["network", network], [link ? "message of layers" : "layers", layers]);
    facts.push([link ? "link" : "unit", this.data.units[block.unit]]);
    facts.push(["start", millis(block.start)], ["end", millis(block.start + block.length)], ["takes", millis(block.length)]);
    if (link) return facts;
    if (block.copied) {
      const [copyIn, run, copyOut] = block.times;
      facts.push(["copy in", millis(copyIn)], ["run", millis(run)], ["copy out", millis(copyOut)]);
    }
    const lost = block.band.lost[block.place], alone = block.length - lost;
    if (lost !== undefined) {
      facts.push(["slowdown", lost ? `${millis(lost)} (+${(100 * lost / alone).toFixed(1)} %)` : "none"]);
    }
    if (!this.data.alone) return facts;
    const busy = block.wait && this.before(block);
    facts.push(["waited", block.wait ? millis(block.wait) + (busy ? `, for ${busy}` : "") : "not at all"]);
    const company = new Map();
    for (const [other, met, cost] of this.company(block)) {
      const name = `${this.name(other)} on ${this.data.units[other.unit]}`, [before, lost] = company.get(name) || [0, 0];
      company.set(name, [before + met, lost + cost]);
    }
    const told = [...company].sort((a, b) => b[1][1] - a[1][1] || b[1][0] - a[1][0]).map(([name, [met, cost]]) =>
      `${name} for ${millis(met)}` + (cost ? `: costs ${millis(cost)}` : ""));
    if (told.length) facts.push(["beside", [...told.slice(0, 5), ...(told.length > 5 ? [`${told.length - 5} more`] : [])].join("; ")]);
    return facts;
  }
  bubble(line, time) {
    const row = this.rows[this.lines.indexOf(line)] || [];
    for (let n = 1; n < row.length; n++) {
      const after = this.blocks.get(row[n]);
      if (time >= after.start) continue;
      const before = this.blocks.get(row[n - 1]), end = before.start + before.length;
      if (time < end) return null;
      return [["bubble", millis(after.start - end)], ["unit", this.data.units[after.unit]],
        ["from", millis(end)], ["to", millis(after.start)],
        ["between", `${this.name(before)} and ${this.name(after)}`]];
    }
    return null;
  }
  most_zoom() {
    let least = this.data.end;
    for (const row of this.rows) {
      let sum = 0;
      for (const mark of row) sum += this.blocks.get(mark).length;
      if (row.length) least = Math.min(least, sum / row.length);
    }
    this.longest = Math.max(...this.rows.map(row => row.length));
    return Math.min(400, Math.max(4, 2 ** Math.ceil(Math.log2(0.12 * this.data.end / Math.max(least, 0.01)))));
  }
  listen() {
    const tools = this.figure.querySelector(".zoom");
    tools.hidden = this.figure.querySelector(".hint").hidden = false;
    this.output = tools.querySelector("output");
    this.buttons = Object.fromEntries([...tools.querySelectorAll("button")].map(b => [b.dataset.zoom, b]));
    const factors = { in: 2, out: 0.5, fit: 0 };
    for (const [name, button] of Object.entries(this.buttons)) button.addEventListener("click", () => this.by(factors[name]));
    this.keys = [...this.figure.querySelectorAll("[data-stream]")];
    for (const button of this.keys) {
      button.disabled = false;
      button.addEventListener("click", () => this.choose(button));
    }
    this.svg.addEventListener("keydown", event => {
      const step = { n: 1, p: -1 }[event.key], block = this.blocks.get(event.target);
      if (step && block && !event.ctrlKey && !event.metaKey && !event.altKey) {
        event.preventDefault();
        const own = this.own(block), next = own[own.indexOf(block) + step];
        if (next) this.walk.go(next.band.marks[next.place]);
        return;
      }
      const factor = { "+": 2, "=": 2, "-": 0.5, "0": 0 }[event.key];
      if (factor === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      this.by(factor, event.target);
    });
    this.svg.addEventListener("pointermove", event => this.point(event));
    this.svg.addEventListener("focusin", () => this.mark());
    this.svg.addEventListener("focusout", () => { this.ring.setAttribute("visibility", "hidden"); this.follow(null); });
    this.svg.addEventListener("pointerleave", () => this.follow(this.focused));
    this.scroll.addEventListener("wheel", event => {
      if (!event.ctrlKey || !event.deltaY) return;
      event.preventDefault();
      this.by(event.deltaY < 0 ? 1.25 : 0.8, null, event.clientX);
    }, { passive: false });
    this.scroll.addEventListener("scroll", () => { moved(); this.later(); }, { passive: true });
    addEventListener("resize", () => this.later());
    addEventListener("beforeprint", () => this.by(0));
  }
  point(event) {
    const mark = this.walk.of(event.target), at = { left: event.clientX, width: 0, top: event.clientY, bottom: event.clientY + 8 };
    this.follow(mark || this.focused);
    if (mark) return show(this.facts(this.blocks.get(mark)), at);
    const box = this.svg.getBoundingClientRect();
    const line = event.target.classList.contains("idle") ? event.target.parentNode : null;
    const facts = line && this.bubble(line, (event.clientX - box.left) / box.width * this.data.end);
    if (facts) show(facts, at); else moved();
  }
  get focused() {
    return this.blocks.has(document.activeElement) ? document.activeElement : null;
  }
  /* The way of one request over the units: all other blocks of its trace fade, its company less than others.
     Without a block: of the request that the legend's button in force names, in all traces. */
  follow(mark) {
    const block = this.blocks.get(mark), key = block || this.chosen;
    if (this.followed === key) return;
    this.followed = key;
    const stream = block ? block.stream : this.chosen, none = stream === null;
    const company = new Set(block ? this.company(block).map(([other]) => other) : []);
    for (const [mark, other] of this.blocks) {
      const concerned = !none && (!block || other.band === block.band);
      const own = other.stream === stream && (!block || other.request === block.request);
      mark.classList.toggle("faded", concerned && !own && !company.has(other));
      mark.classList.toggle("beside", concerned && !own && company.has(other));
    }
    this.later();
    this.svg.classList.toggle("followed", !none);
    this.draw_way(none ? [] : block ? [block] : this.data.bands.flatMap(band => this.firsts(band, stream)));
  }
  /* A block of each request of a stream in a trace. */
  firsts(band, stream) {
    const found = new Map();
    for (const mark of band.marks) {
      const block = this.blocks.get(mark);
      if (block.stream === stream && !found.has(block.request)) found.set(block.request, block);
    }
    return [...found.values()];
  }
  /* A line from each block to the next one; where the request waits for its unit, it is dashed on its row. */
  draw_way(blocks) {
    const parts = [], at = time => `${100 * time / this.data.end}%`;
    const line = (name, x1, y1, x2, y2) => parts.push(draw("line", { class: name, x1: at(x1), y1, x2: at(x2), y2 }));
    for (const block of this.data.alone ? blocks : []) {
      this.own(block).forEach((here, n, own) => {
        const ready = here.start - here.wait;
        if (n && own[n - 1].y !== here.y) line("hop", ready, own[n - 1].y, ready, here.y);
        if (here.wait) line("wait", ready, here.y, here.start, here.y);
      });
    }
    this.way.replaceChildren(...parts);
  }
  choose(button) {
    const stream = Number(button.dataset.stream);
    this.chosen = this.chosen === stream ? null : stream;
    for (const other of this.keys) other.setAttribute("aria-pressed", String(Number(other.dataset.stream) === this.chosen));
    this.follow(this.focused);
  }
  by(factor, mark = null, x = null) {
    const box = this.scroll.getBoundingClientRect(), width = this.scroll.clientWidth;
    const focus = mark && this.blocks.has(mark) ? mark.getBoundingClientRect() : null;
    const on = focus ? focus.left + focus.width / 2 - box.left : x === null ? width / 2 : x - box.left;
    const share = (this.scroll.scrollLeft + on) / (width * this.zoom);
    this.zoom = factor ? Math.min(this.most, Math.max(1, this.zoom * factor)) : 1;
    this.svg.setAttribute("width", `${100 * this.zoom}%`);
    this.scroll.scrollLeft = share * width * this.zoom - Math.min(Math.max(on, 0), width);
    this.refresh();
    if (focus) pin(this.facts(this.blocks.get(mark)), mark);
  }
  later() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.refresh(); });
  }
  mark() {
    const mark = this.walk.current, block = this.blocks.get(mark), width = this.scroll.clientWidth * this.zoom;
    if (document.activeElement !== mark) return;
    this.follow(mark);
    const least = 5 / width * 100, share = 100 * block.length / this.data.end;
    this.ring.setAttribute("x", `${100 * block.start / this.data.end - Math.max(0, least - share) / 2}%`);
    this.ring.setAttribute("width", `${Math.max(share, least)}%`);
    this.ring.setAttribute("y", Number(mark.getAttribute("y")) - 2);
    this.ring.setAttribute("visibility", "visible");
  }
  refresh() {
    const width = this.scroll.clientWidth * this.zoom;
    if (!width) return;
    const from = (this.scroll.scrollLeft - 80) / width * this.data.end;
    const to = (this.scroll.scrollLeft + this.scroll.clientWidth + 80) / width * this.data.end;
    this.output.textContent = `${this.zoom < 10 ? Math.round(this.zoom * 10) / 10 : Math.round(this.zoom)}×`;
    this.buttons.out.disabled = this.buttons.fit.disabled = this.zoom <= 1;
    this.buttons.in.disabled = this.zoom >= this.most;
    this.lanes.classList.toggle("dense", width < 6 * this.longest);
    this.draw_axis(width, Math.max(0, from), Math.min(this.data.end, to));
    this.draw_labels(width, from, to);
    this.mark();
  }
  draw_axis(width, from, to) {
    const shown = (this.scroll.clientWidth / width) * this.data.end;
    const unit = [[1e6, "s"], [1e3, "ms"], [1, "us"]].find(([us]) => shown >= 2 * us) || [1, "us"];
    const least = shown / unit[0] / Math.max(2, Math.floor(this.scroll.clientWidth / 110));
    const power = 10 ** Math.floor(Math.log10(least));
    const step = power * STEPS.find(s => s * power >= least * (1 - 1e-9)) * unit[0];
    const parts = [];
    for (let n = Math.ceil(from / step); n * step <= to * (1 + 1e-9); n++) {
      const x = `${100 * n * step / this.data.end}%`, left = n * step / this.data.end * width;
      const anchor = left < 24 ? "start" : left > width - 30 ? "end" : "middle";
      const text = `${Number((n * step / unit[0]).toPrecision(9))} ${unit[1]}`;
      parts.push(draw("line", { x1: x, x2: x, y1: 0, y2: this.height }));
      parts.push(draw("text", { x, y: this.height + 17, "text-anchor": anchor }, text));
    }
    this.axis.replaceChildren(...parts);
  }
  draw_labels(width, from, to) {
    const parts = [], scale = width / this.data.end;
    for (const row of this.rows) for (const mark of row) {
      const block = this.blocks.get(mark);
      if (block.start > to || this.data.links.includes(block.unit)) break;
      if (block.start + block.length < from) continue;
      const name = this.name(block), space = block.length * scale - 4;
      const letters = Math.floor(space / 6.6);
      if (letters < Math.min(name.length, 5)) continue;
      const text = letters >= name.length ? name : `${name.slice(0, letters - 1)}…`;
      const x = `${100 * (block.start + block.length / 2) / this.data.end}%`;
      const faded = mark.classList.contains("faded") ? "faded" : "";
      parts.push(draw("text", { x, y: Number(mark.getAttribute("y")) + 14, class: faded }, text));
    }
    this.labels.replaceChildren(...parts);
  }
}

/* A table of what is told of marks: a row for each, a column for each name. */
const tabled = (title, told) => {
  const table = make("table"), head = make("tr");
  const known = told.map(facts => new Map(facts)), names = [...new Set(known.flatMap(facts => [...facts.keys()]))];
  const rows = known.map(facts => {
    const line = make("tr");
    for (const name of names) line.append(make("td", facts.get(name) || "-"));
    return line;
  });
  for (const name of names) { const cell = make("th", name); cell.scope = "col"; head.append(cell); }
  table.createCaption().textContent = title;
  table.createTHead().append(head);
  table.createTBody().append(...rows);
  return table;
};
const told = new Map();
for (const figure of document.querySelectorAll("[data-timeline]")) {
  const chart = new Timeline(figure);
  told.set(figure.dataset.timeline, () => [...chart.blocks.values()].map(block => chart.facts(block)));
}
for (const figure of document.querySelectorAll("[data-marks]")) {
  const facts = data(figure.dataset.marks), marks = [...figure.querySelectorAll(".m")];
  told.set(figure.dataset.marks, () => facts);
  const known = new Map(marks.map((mark, n) => [mark, facts[n]]));
  const walk = new Walk([marks], mark => known.get(mark));
  const svg = figure.querySelector(".plot > svg");
  walk.listen(svg);
  svg.addEventListener("pointermove", event => {
    const mark = walk.of(event.target);
    if (mark) show(known.get(mark), mark.getBoundingClientRect()); else moved();
  });
}
for (const details of document.querySelectorAll("[data-table]")) {
  details.addEventListener("toggle", () => {
    const place = details.querySelector(".blocks");
    if (!details.open || place.firstChild) return;
    place.append(tabled(details.dataset.title, told.get(details.dataset.table)()));
    place.tabIndex = 0;
    place.setAttribute("role", "region");
    place.setAttribute("aria-label", details.dataset.title);
  });
}

/* Light and dark: as the system says, until somebody chooses. */
const theme = document.getElementById("theme"), system = matchMedia("(prefers-color-scheme: dark)");
const dark = () => document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : system.matches;
const say = () => { theme.textContent = dark() ? "Light" : "Dark"; };
theme.hidden = false;
theme.addEventListener("click", () => { document.documentElement.dataset.theme = dark() ? "light" : "dark"; say(); });
system.addEventListener("change", say);
say();
body.dataset.ready = "yes";
})();
