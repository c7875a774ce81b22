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
    const root = element("div", "", parent);
    this.tileRow = element("div", "tiles", root);
    const box = element("div", "knob", root);
    const line = element("div", "line", box);
    this.at = element("output", "at", line);
    this.input = element("input", "", line);
    this.input.type = "range";
    this.input.min = 0;
    const lift = element("span", "lift", line);
    this.lift = element("b", "", lift);
    lift.append(" against the best constant at this cost");
    this.shares = element("div", "shares", box);
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
    this.parts = rows(this.shares, "", data.models, (part, one) => (part.style.background = one.color));
    this.models = rows(this.legend, "model", data.models, drawModel);
    this.rest();
  }

  /** Everything as the page last said it. */
  rest() {
    const { at, text, tiles } = this.data;
    this.input.value = at;
    this.mark(at, text);
    tiles.forEach((tile, i) => fill(this.tiles[i], tile.value, tile.interval));
    this.verdict("");
    if (!this.sent) settlePoint(this.place);
  }

  /** Everything at one step, intervals aside: those need the queries. */
  follow(step) {
    const { tiles, usd, symbol, followers } = this.data;
    const knob = this.value("knob", step);
    const text = `${symbol} ${usd ? dollars(knob) : Number(knob.toPrecision(4))}`;
    // first, as it asks where things are: after a change the browser would have to lay out twice
    movePoint(this.place, this.value(followers.x, step), this.value(followers.y, step), text);
    this.mark(step, text);
    tiles.forEach(({ measure }, i) => {
      const value = this.value(measure, step);
      fill(this.tiles[i], measure === "cost_usd" ? dollars(value) : percent(value), "on release");
    });
    this.verdict("0.4");
  }

  mark(step, text) {
    this.at.textContent = text;
    this.lift.textContent = `${signed(this.value("lift", step))} pp`;
    this.models.forEach((model, i) => {
      const share = this.value(`share_${i}`, step);
      this.parts[i].style.width = `${100 * share}%`;
      model.querySelector("b").textContent = percent(100 * share);
    });
    const first = this.tiles[0].querySelector(".label").textContent;
    const quality = percent(this.value("qr", step));
    const cost = dollars(this.value("cost_usd", step));
    this.input.setAttribute("aria-valuetext", `${text}: ${first} ${quality}, ${cost} per query`);
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
    this.verdict("");
  }

  verdict(opacity) {
    const box = keyed(this.data.followers.verdict);
    if (box) box.style.opacity = opacity;
  }

  get place() {
    return { plot: this.data.followers.plot, at: this.data.text };
  }

  value(column, step) {
    return this.columns.get(column)[step];
  }
}

// The plot. Its ring is moved on the screen only: plotly draws it anew when the page runs, and
// `plotly_afterplot` takes the move back. The figure gives the ring's trace its name.

const watched = new WeakSet();

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
  tile.title = `${help} Below: 95 % interval.`;
  element("div", "label", tile).textContent = label;
  element("div", "value", tile);
  element("div", "interval", tile);
}

function drawModel(row, { name, color }) {
  element("i", "", row).style.background = color;
  element("span", "", row).textContent = name;
  element("b", "", row);
}

function fill(tile, value, interval) {
  tile.querySelector(".value").textContent = value;
  tile.querySelector(".interval").textContent = interval;
}

const percent = (value) => `${value.toFixed(1)} %`;

function signed(value) {
  const shown = value.toFixed(1);
  if (Number(shown) === 0) return "0.0";
  return value > 0 ? `+${shown}` : shown.replace("-", "\u2212");
}

/** As `usd` of hydra_core/views/numbers.py: three significant digits, no exponent. */
function dollars(value) {
  if (!value) return "$0";
  const digits = Math.min(Math.max(2 - Math.floor(Math.log10(Math.abs(value))), 2), 9);
  const fixed = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  return `$${value.toLocaleString("en-US", fixed)}`;
}
