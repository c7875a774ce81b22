// Puts a button on every figure of the page that saves it as PNG or SVG, or its numbers as CSV.
// `data` is what scripts.py sends: the theme's colours, and the file that draws plots, to be loaded
// before the first plot comes. Nothing leaves the browser.

const NAME = "figure-files";
const PNG_SCALE = 3;
const ENTRIES = [
  ["PNG", "picture", savePng],
  ["SVG", "drawing to edit", saveSvg],
  ["CSV", "the numbers", saveCsv],
];
let theme = {};

export default function ({ data }) {
  theme = data;
  const program = document.querySelector('script[type=module][src*="/static/js/"]');
  if (data.plots && program) import(new URL(data.plots, program.src)).catch(() => {});
  style();
  let waiting = 0;
  const look = () => {
    waiting = 0;
    document.querySelectorAll(".js-plotly-plot").forEach(attach);
  };
  const observer = new MutationObserver(() => (waiting ||= setTimeout(look, 200)));
  observer.observe(document.body, { childList: true, subtree: true });
  look();
  return () => {
    observer.disconnect();
    clearTimeout(waiting);
  };
}

function attach(chart) {
  const host = chart.closest(".stElementContainer");
  if (!host || host.querySelector(`:scope > .${NAME}`)) return;
  const box = element("div", NAME, host);
  const button = element("button", "", box);
  button.type = "button";
  button.setAttribute("aria-label", "Save this figure");
  button.setAttribute("aria-expanded", "false");
  button.title = "Save this figure: PNG, SVG or its numbers";
  button.innerHTML =
    '<svg viewBox="0 0 24 24" width="16" height="16" aria-hidden="true" fill="currentColor">' +
    '<path d="M12 16 7 11l1.4-1.4 2.6 2.55V4h2v8.15l2.6-2.55L17 11zM6 20q-.8 0-1.4-.6T4 18v-3h2v3h12v-3h2v3q0 .8-.6 1.4T18 20z"/></svg>';
  const menu = element("div", "", box);
  menu.hidden = true;
  const open = (now) => {
    menu.hidden = !now;
    button.setAttribute("aria-expanded", String(now));
  };
  for (const [label, told, save] of ENTRIES) {
    const entry = element("button", "", menu);
    entry.type = "button";
    element("b", "", entry).textContent = label;
    element("span", "", entry).textContent = told;
    entry.onclick = () => {
      open(false);
      button.focus();
      save(host.querySelector(".js-plotly-plot"), nameOf(host));
    };
  }
  button.onclick = () => open(menu.hidden);
  box.onkeydown = (event) => {
    if (event.key !== "Escape" || menu.hidden) return;
    open(false);
    button.focus();
  };
  box.onfocusout = (event) => !box.contains(event.relatedTarget) && open(false);
}

/** As the tables' files are named: the element's key. */
function nameOf(host) {
  const key = [...host.classList].find((one) => one.startsWith("st-key-"));
  return key ? key.slice("st-key-".length) : "figure";
}

/** The figure as it is at rest, on the page's colour, in the page's size. */
async function drawn(chart) {
  const { width, height } = chart._fullLayout;
  const layout = { ...chart.layout, paper_bgcolor: theme.surface, width, height };
  const url = await window.Plotly.toImage(
    { data: chart.data, layout, config: {} },
    { format: "svg", width, height },
  );
  return { svg: decodeURIComponent(url.slice(url.indexOf(",") + 1)), width, height };
}

async function saveSvg(chart, name) {
  const { svg } = await drawn(chart);
  save(new Blob([svg], { type: "image/svg+xml" }), `${name}.svg`);
}

async function savePng(chart, name) {
  const { svg, width, height } = await drawn(chart);
  const image = new Image();
  const lettered = svg.replace(/<svg[^>]*>/, (tag) => `${tag}<style>${FONT}</style>`);
  image.src = `data:image/svg+xml,${encodeURIComponent(lettered.replace("FONT", await font()))}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = PNG_SCALE * width;
  canvas.height = PNG_SCALE * height;
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => save(blob, `${name}.png`), "image/png");
}

// A picture inside a page sees none of the page's fonts: the one that the figures are set in is
// written into it. Without it the letters are those of the machine.
const FONT = '@font-face{font-family:"Source Sans";font-weight:200 900;src:url(FONT)}';
let kept;

function font() {
  kept ??= (async () => {
    for (const sheet of document.styleSheets) {
      for (const rule of rulesOf(sheet)) {
        if (!(rule instanceof CSSFontFaceRule) || rule.style.fontStyle === "italic") continue;
        if (!/^"?Source Sans"?$/.test(rule.style.fontFamily)) continue;
        const source = rule.style.getPropertyValue("src").match(/url\("?([^")]+)/)?.[1];
        const answer = await fetch(new URL(source, sheet.href ?? document.baseURI));
        return await read(await answer.blob());
      }
    }
    return "";
  })().catch(() => "");
  return kept;
}

function rulesOf(sheet) {
  try {
    return [...sheet.cssRules];
  } catch {
    return []; // another site's
  }
}

function read(blob) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(blob);
  });
}

/** One row a point of every trace, with a column for everything that the traces have. */
function saveCsv(chart, name) {
  const layout = chart._fullLayout;
  const rows = chart._fullData.filter((trace) => trace.visible === true).flatMap((trace) => {
    const points = trace.type === "heatmap" ? cellsOf(trace) : pointsOf(trace);
    const axes = {
      x: layout[(trace.xaxis ?? "x").replace("x", "xaxis")],
      y: layout[(trace.yaxis ?? "y").replace("y", "yaxis")],
    };
    return points.map((point) => {
      for (const side of ["x", "y"]) {
        if (side in point) point[side] = named(point[side], axes[side]);
      }
      const { meta, name } = chart.data[trace.index] ?? {};
      return { series: meta ?? name ?? "", ...point };
    });
  });
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const titles = { x: title(chart.layout.xaxis), y: title(chart.layout.yaxis) };
  const lines = [columns.map((one) => titles[one] || one)];
  lines.push(...rows.map((row) => columns.map((one) => row[one])));
  const csv = lines.map((line) => line.map(cell).join(",")).join("\r\n");
  save(new Blob(["\ufeff", csv, "\r\n"], { type: "text/csv" }), `${name}.csv`);
}

const LISTS = ["text", "x", "y", "base", "q1", "median", "q3", "mean", "lowerfence", "upperfence"];

function pointsOf(trace) {
  const lists = { ...Object.fromEntries(LISTS.map((one) => [one, trace[one]])) };
  for (const side of ["x", "y"]) {
    const bars = trace[`error_${side}`];
    if (bars?.visible) {
      lists[`${side} plus`] = bars.array;
      lists[`${side} minus`] = bars.arrayminus ?? bars.array;
    }
  }
  const count = Math.max(...Object.values(lists).map((one) => (listed(one) ? one.length : 0)));
  if (!listed(trace.x) && trace.dx) {
    lists.x = Array.from({ length: count }, (_, i) => trace.x0 + i * trace.dx);
  }
  return Array.from({ length: count }, (_, i) => {
    const point = {};
    for (const [one, list] of Object.entries(lists)) {
      if (listed(list) && list.length) point[one] = digits(list, i);
    }
    [trace.customdata?.[i]].flat().forEach((value, k) => {
      if (value !== undefined) point[`detail ${k + 1}`] = value;
    });
    return point;
  });
}

function cellsOf(trace) {
  return trace.z.flatMap((row, i) =>
    Array.from(row, (z, k) => ({ x: trace.x[k], y: trace.y[i], z })),
  );
}

const listed = (value) => Array.isArray(value) || ArrayBuffer.isView(value);

/** Four bytes hold seven digits: the others are noise. */
function digits(list, i) {
  return list instanceof Float32Array ? Number(list[i].toPrecision(7)) : list[i];
}

/** What an axis writes at this place, where it writes a name. */
function named(value, axis) {
  const at = axis?.ticktext ? Array.from(axis.tickvals).indexOf(value) : -1;
  return at < 0 ? value : axis.ticktext[at];
}

const title = (axis) => text(axis?.title?.text ?? "");

/** Names are markup to plotly. */
function text(markup) {
  return new DOMParser().parseFromString(String(markup), "text/html").body.textContent;
}

/** As `csv_file` of hydra_core/export/downloads.py: no text that a spreadsheet would run. */
function cell(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "";
  if (typeof value === "number") return String(value);
  const shown = text(value).replace(/^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/, "'$&");
  return /[",\r\n]/.test(shown) ? `"${shown.replaceAll('"', '""')}"` : shown;
}

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

function element(tag, name, parent) {
  const made = document.createElement(tag);
  if (name) made.className = name;
  parent.append(made);
  return made;
}

/** The button lies outside this component, on the page: its style does too. */
function style() {
  const id = `${NAME}-style`;
  const sheet = document.getElementById(id) ?? element("style", "", document.head);
  sheet.id = id;
  const { surface, ink, grid, hue } = theme;
  sheet.textContent = `
.${NAME} { position: absolute; top: 0; right: 2px; z-index: 5; }
.${NAME} button { font: inherit; color: ${ink}; background: ${surface}; cursor: pointer; }
.${NAME} > button {
  display: flex; align-items: center; justify-content: center; width: 26px; height: 26px;
  padding: 0; border: 1px solid ${grid}; border-radius: 6px; opacity: 0; transition: opacity .15s;
}
.stElementContainer:hover > .${NAME} > button, .${NAME}:focus-within > button { opacity: 1; }
@media (hover: none) { .${NAME} > button { opacity: .7; } }
.${NAME} button:focus-visible { outline: 2px solid ${hue}; outline-offset: 1px; }
.${NAME} > div {
  position: absolute; right: 0; top: 30px; min-width: 11rem; padding: 4px; background: ${surface};
  border: 1px solid ${grid}; border-radius: 8px; box-shadow: 0 4px 16px rgba(0, 0, 0, .16);
}
.${NAME} > div > button {
  display: flex; gap: .7rem; width: 100%; padding: .35rem .6rem; border: 0; border-radius: 5px;
  font-size: .875rem; text-align: left; white-space: nowrap;
}
.${NAME} > div[hidden] { display: none; }
.${NAME} > div > button:hover { background: ${grid}; }
.${NAME} > div > button b { font-weight: 600; min-width: 2.2rem; }
@media print { .${NAME} { display: none; } }`;
}
