// Draws the knob and lets the page follow it. `data` is what component.py sends: texts where the
// knob stands, and an Arrow table with the figures at every step. Texts are set as text, never as
// markup.

const knobs = new WeakMap();

export default function ({ parentElement, data, setTriggerValue }) {
  let knob = knobs.get(parentElement);
  if (!knob) {
    knob = new LiveKnob(parentElement);
    knobs.set(parentElement, knob);
  }
  knob.show(data, (value) => setTriggerValue("knob", value));
  return () => knob.leave();
}

class LiveKnob {
  constructor(parent) {
    const root = (this.root = element("div", "live", parent));
    this.tileRow = element("div", "tiles", root);
    const box = element("div", "knob", root);
    const line = element("div", "line", box);
    this.at = element("output", "at", line);
    this.input = element("input", "", line);
    this.input.type = "range";
    this.input.min = 0;
    this.lifted = element("span", "lift", line);
    this.lift = element("b", "", this.lifted);
    this.lifted.append(" against the best fixed mix at this cost");
    this.given = element("div", "given", line);
    this.shares = element("div", "bars", box);
    this.shares.setAttribute("aria-hidden", "true"); // the legend says the same
    this.legend = element("div", "legend", box);
    this.held = false; // a pointer or a key is down
    this.input.oninput = () => this.follow(Number(this.input.value));
    this.input.onpointerdown = () => (this.held = true);
    this.input.onkeydown = (event) => this.pressed(event);
    this.input.onkeyup = this.input.onblur = this.input.onpointercancel = () => this.release();
    this.input.onchange = () => !this.byKey && this.release();
  }

  show(data, send) {
    this.data = data;
    this.send = send;
    this.columns = new Map();
    for (const { name } of data.steps.schema.fields) {
      this.columns.set(name, data.steps.getChild(name).toArray());
    }
    if (this.held) return; // the page ran again during a drag: the hand goes first
    this.sent = null;
    this.input.max = data.steps.numRows - 1;
    this.input.setAttribute("aria-label", `${data.symbol} along the curve`);
    this.tiles = rows(this.tileRow, "tile", data.tiles, drawTile);
    this.tileRow.style.setProperty("--tiles", data.tiles.length);
    this.bars = rows(this.shares, "bar", data.bars, (bar, one) => drawBar(bar, one, data.models));
    this.models = rows(this.legend, "model", data.bars.length ? data.models : [], drawModel);
    const longest = Math.max(...data.models.map(({ short }) => short.length));
    this.legend.style.setProperty("--longest", longest);
    this.legend.classList.toggle("many", this.models.length > 6);
    this.messages = rows(this.given, "message", data.messages, drawMessage);
    this.lifted.hidden = !this.columns.has("lift");
    this.root.classList.toggle("along", Boolean(data.line));
    if (data.line) {
      this.input.style.marginLeft = `${data.line.left - HALF_THUMB}px`;
      this.input.style.marginRight = `${data.line.right - HALF_THUMB}px`;
    }
    this.rest();
  }

  /** Everything as the page last said it. */
  rest() {
    const { at, text, tiles } = this.data;
    this.input.value = at;
    this.mark(at, text, true);
    tiles.forEach((tile, i) => fill(this.tiles[i], tile.value, tile.interval, tile.tone));
    this.fade("");
    if (!this.sent) {
      if (this.data.point) settlePoint(this.place);
      if (this.data.line) settleLine(this.data.line.plot);
    }
  }

  /** Everything at one step, intervals aside: those need the queries. */
  follow(step) {
    const { tiles, usd, symbol, point, line } = this.data;
    const knob = this.value("knob", step);
    const text = `${symbol} ${usd ? dollars(knob).replace(/\.?0+$/, "") : Number(knob.toPrecision(4))}`;
    // first, as it asks where things are: after a change the browser would have to lay out twice
    if (point) movePoint(this.place, this.value(point.x, step), this.value(point.y, step), text);
    if (line) moveLine(line.plot, this.value(line.x, step), text);
    this.mark(step, text);
    tiles.forEach(({ measure }, i) => {
      const value = this.value(measure, step);
      const cost = measure.endsWith("_usd");
      const change = this.columns.get(`${measure}_change`)?.[step];
      let below = "on release";
      if (change !== undefined) {
        below = cost ? signedDollars(change, value) : `${signed(change)} pp`;
      }
      fill(this.tiles[i], cost ? dollars(value) : percent(value), below, "");
    });
    this.fade("0.4");
  }

  mark(step, text, resting = false) {
    const { tiles, bars, models, messages } = this.data;
    this.at.textContent = text;
    const told = [];
    if (this.columns.has("lift")) {
      const lift = `${signed(this.value("lift", step))} pp`;
      this.lift.textContent = resting ? (this.data.lift ?? lift) : lift;
    }
    bars.forEach(({ column, shares }, i) => {
      models.forEach((_, k) => {
        const share = resting ? shares[k] : this.value(`${column}_${k}`, step);
        this.bars[i].lastChild.children[k].style.width = `${100 * share}%`;
        if (i === bars.length - 1) {
          this.models[k].querySelector("b").textContent = percent(100 * share);
        }
      });
    });
    messages.forEach(({ label, column, facts }, i) => {
      const number = this.value(column, step);
      const { name, color } = models[number];
      const [box, , model, fact] = this.messages[i].children;
      box.style.background = color;
      model.textContent = name;
      fact.textContent = facts[number];
      told.push(label ? `${label} ${name}` : name);
    });
    if (tiles.length) {
      const first = this.tiles[0].querySelector(".label").textContent;
      const quality = percent(this.value(tiles[0].measure, step));
      told.push(`${first} ${quality}, ${dollars(this.value("cost_usd", step))} per query`);
    }
    this.input.setAttribute("aria-valuetext", `${text}: ${told.join(", ")}`);
  }

  pressed(event) {
    if (event.key === "Escape") {
      this.held = this.byKey = false;
      this.rest();
    } else if (/^(Arrow|Page|Home|End)/.test(event.key)) {
      this.held = this.byKey = true;
    }
  }

  release() {
    this.held = this.byKey = false;
    const step = Number(this.input.value);
    if (step === this.data.at || step === this.sent) return;
    this.sent = step;
    this.send(this.value("knob", step));
  }

  leave() {
    this.fade("");
  }

  fade(opacity) {
    for (const key of this.data.fades) {
      const box = keyed(key);
      if (box) box.style.opacity = opacity;
    }
  }

  get place() {
    return { plot: this.data.point.plot, at: this.data.text };
  }

  value(column, step) {
    return this.columns.get(column)[step];
  }
}

// The plot. Its ring is moved on the screen only: plotly draws it anew when the page runs, and
// `plotly_afterplot` takes the move back. The figure gives the ring's trace its name.

const watched = new WeakSet();
const HALF_THUMB = 8; // pixels, of Chromium's, Firefox's and Safari's own range input

function plotOf(key) {
  const chart = keyed(key)?.querySelector(".js-plotly-plot");
  const index = chart?.data?.findIndex((trace) => trace.name === "operating point") ?? -1;
  const ring = index < 0 ? null : chart.querySelectorAll(".scatterlayer .trace")[index];
  return ring ? { chart, ring } : null;
}

function movePoint({ plot, at }, x, y, text) {
  const found = plotOf(plot);
  if (!found) return;
  const { chart, ring } = found;
  const { width, height } = chart.querySelector(".nsewdrag").getBBox();
  const place = (axis, value) => (value - axis.range[0]) / (axis.range[1] - axis.range[0]);
  const goal = [
    place(chart.layout.xaxis, x) * width,
    (1 - place(chart.layout.yaxis, y)) * height,
  ];
  const drawn = ring.querySelector("path.point").getAttribute("transform");
  const [here, there] = drawn.match(/-?[\d.]+(e-?\d+)?/g).map(Number);
  ring.setAttribute("transform", `translate(${goal[0] - here},${goal[1] - there})`);
  let label = ring.querySelector("text");
  if (!label) {
    label = document.createElementNS("http://www.w3.org/2000/svg", "text");
    label.setAttribute("text-anchor", "middle");
    label.setAttribute("font-size", "16");
    label.setAttribute("font-weight", "700");
    label.style.fill = getComputedStyle(ring.querySelector("path.point")).stroke;
    label.style.fontFamily = getComputedStyle(document.body).fontFamily;
    label.style.pointerEvents = "none";
    ring.append(label);
  }
  label.setAttribute("x", here);
  label.setAttribute("y", goal[1] < 40 ? there + 32 : there - 18);
  label.textContent = text;
  nameOf(chart, at, "hidden");
  if (!watched.has(chart)) {
    watched.add(chart);
    chart.on("plotly_afterplot", () => settlePoint({ plot, at: "" }));
  }
}

function settlePoint({ plot, at }) {
  const found = plotOf(plot);
  if (!found) return;
  found.ring.removeAttribute("transform");
  found.ring.querySelector("text")?.remove();
  nameOf(found.chart, at, "visible");
}

/** Moves a chart's one line across and its flag, which is the annotation that stands above it. */
function moveLine(plot, x, text) {
  const chart = keyed(plot)?.querySelector(".js-plotly-plot");
  const path = chart?.querySelector(".shapelayer path");
  if (!path) return;
  const [low, high] = chart.layout.xaxis.range;
  const width = chart.querySelector(".nsewdrag").getBBox().width;
  const shift = ((x - chart.layout.shapes[0].x0) / (high - low)) * width;
  path.setAttribute("transform", `translate(${shift},0)`);
  const flag = flagOf(chart);
  flag.node.setAttribute("transform", `translate(${shift},0)`);
  flag.node.dataset.at ??= flag.text.textContent;
  flag.text.textContent = text;
  if (!watched.has(chart)) {
    watched.add(chart);
    chart.on("plotly_afterplot", () => settleLine(plot));
  }
}

function settleLine(plot) {
  const chart = keyed(plot)?.querySelector(".js-plotly-plot");
  chart?.querySelector(".shapelayer path")?.removeAttribute("transform");
  const flag = chart && flagOf(chart);
  if (!flag?.node.dataset.at) return;
  flag.node.removeAttribute("transform");
  flag.text.textContent = flag.node.dataset.at;
}

/** The last annotation: the figure draws the flag after the names. */
function flagOf(chart) {
  const node = [...chart.querySelectorAll("g.annotation")].at(-1);
  return { node, text: node.querySelector("tspan") ?? node.querySelector("text") };
}

/** The label that the figure itself put beside the point. */
function nameOf(chart, text, visibility) {
  for (const label of chart.querySelectorAll("g.annotation")) {
    if (text && label.textContent === text) label.style.visibility = visibility;
  }
}

/** The page's element with this key: Streamlit's documented class for it. */
function keyed(key) {
  return document.querySelector(`.st-key-${key.replace(/[^a-zA-Z0-9_-]/g, "-")}`);
}

function element(tag, name, parent) {
  const made = document.createElement(tag);
  if (name) made.className = name;
  parent.append(made);
  return made;
}

/** One child for each entry, drawn anew where their number or content may have changed. */
function rows(parent, name, entries, draw) {
  parent.replaceChildren();
  return entries.map((entry) => {
    const part = element("div", name, parent);
    draw(part, entry);
    return part;
  });
}

function drawTile(tile, { label, help }) {
  tile.title = help;
  element("div", "label", tile).textContent = label;
  element("div", "value", tile);
  element("div", "interval", tile);
}

function drawBar(row, { label }, models) {
  if (label) element("span", "", row).textContent = label;
  const bar = element("div", "shares", row);
  for (const { color } of models) element("div", "", bar).style.background = color;
}

function drawMessage(row, { label }) {
  element("i", "", row);
  element("span", "", row).textContent = label;
  element("b", "", row);
  element("span", "fact", row);
}

function drawModel(row, { name, color, short }) {
  element("i", "", row).style.background = color;
  element("span", "", row).textContent = short;
  row.title = name;
  element("b", "", row);
}

function fill(tile, value, below, tone) {
  tile.querySelector(".value").textContent = value;
  tile.querySelector(".interval").textContent = below;
  tile.dataset.tone = tone;
}

/** One decimal as the rest of the console writes it: of two that are as near, the even one. */
const tenths = (value) =>
  (Math.abs(value) * 4) % 4 === 1 ? (Math.trunc(value * 10) / 10).toFixed(1) : value.toFixed(1);

const percent = (value) => (Number.isNaN(value) ? "–" : `${tenths(value)} %`);

function signed(value) {
  const shown = tenths(value);
  if (Number(shown) === 0) return "0.0";
  return value > 0 ? `+${shown}` : shown.replace("-", "\u2212");
}

/** A difference of two costs in the digits of the cost itself. */
function signedDollars(change, cost) {
  const digits = cost ? Math.min(Math.max(2 - Math.floor(Math.log10(Math.abs(cost))), 2), 9) : 2;
  const shown = Math.abs(change).toFixed(digits);
  if (!Number(shown)) return `$${shown}`;
  return `${change > 0 ? "+" : "\u2212"}$${shown}`;
}

/** As `usd` of hydra_core/console/numbers.py: three significant digits, no exponent. */
function dollars(value) {
  if (Number.isNaN(value)) return "–";
  if (!value) return "$0";
  const digits = Math.min(Math.max(2 - Math.floor(Math.log10(Math.abs(value))), 2), 9);
  const fixed = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  return `$${value.toLocaleString("en-US", fixed)}`;
}
