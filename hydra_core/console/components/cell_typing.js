// Streamlit's table opens the input of a cell, and closes it, some frames after the key or the double
// click that asks for it. Keys in between are held here and handed on, in their order, once it is done.
// Fields of numbers leave out a decimal comma: what was typed or pasted with one is put back.

const OPENS_WITHIN = 1500; // ms: the first input of a kind is loaded when it is first needed
const CLICKED_WITHIN = 400; // a double click may open none
const CLOSES_WITHIN = 1000;
const SETTLES_WITHIN = 60; // until then an input may not know its own last key
const AT_ONCE = { done: () => true, until: 0 };
const LEAVES = new Set(["Enter", "Tab", "Escape"]);

export default function () {
  const held = [];
  let pending = null; // what the keys wait for
  let written = 0; // when the last one went into an input
  let timer = 0;
  let raw = null; // "\n" and what was typed into the field, null where that is not known

  const note = (at, { key }) => {
    if (!isNumber(at)) return;
    if (key.length === 1) raw = (raw ??= isEmpty(at) ? "\n" : null) && raw + key;
    else if (key === "Backspace") raw = raw && (raw.slice(0, -1) || null);
    else if (key !== "Shift") raw = null;
  };
  /** Put the number that was typed into its field, where that left out the comma. */
  const mend = (at) => {
    const number = isNumber(at) ? meant(raw, at.value) : null;
    raw = null;
    if (number === null) return;
    at.select();
    document.execCommand("insertText", false, number);
  };
  const watch = () => {
    if (pending.done() || performance.now() > pending.until) pending = null;
    const early = held.length && leaves(held[0], document.activeElement) && !settled();
    // One key at a time: the table takes in each before it sees the next.
    if (!pending && held.length && !early) hand(held.shift());
    if (pending || held.length) hold(pending ?? AT_ONCE);
  };
  const hold = (found) => {
    pending = found;
    clearTimeout(timer);
    timer = setTimeout(watch, 4);
  };
  const settled = () => performance.now() - written > SETTLES_WITHIN;
  const hand = (event) => {
    const at = document.activeElement ?? document.body;
    const found = begun(at, event);
    written = performance.now();
    if (writes(at) && event.key.length === 1) {
      document.execCommand("insertText", false, event.key);
    } else if (writes(at) && event.key === "Backspace") {
      document.execCommand("delete");
    } else {
      const { key, code, keyCode, shiftKey } = event;
      const told = { key, code, keyCode, shiftKey, bubbles: true, cancelable: true };
      at.dispatchEvent(new KeyboardEvent("keydown", told));
    }
    if (found) hold(found);
  };
  const typed = (event) => {
    if (!event.isTrusted || event.isComposing) return;
    if (event.ctrlKey || event.metaKey || event.altKey) {
      raw = event.key === "a" ? "\n" : null;
      return;
    }
    const leaving = !pending && leaves(event, event.target);
    if (!pending && (event.key === "Enter" || event.key === "Tab")) mend(event.target);
    if (pending || (leaving && !settled())) {
      if (event.key === "Shift") return;
      event.preventDefault();
      event.stopImmediatePropagation();
      held.push(event);
      if (!pending) hold(AT_ONCE);
      return;
    }
    note(event.target, event);
    written = performance.now();
    const found = begun(event.target, event);
    if (found) hold(found);
  };
  const pressed = ({ target }) => {
    if (target === document.activeElement) return;
    while (held.length && writes(document.activeElement)) hand(held.shift());
    mend(document.activeElement);
    raw = "\n";
  };
  const focused = ({ target }) => {
    if (isNumber(target)) raw = "\n";
  };
  const changed = ({ target }) => {
    if (isInput(target)) written = performance.now(); // pasted, too
  };
  const pasted = (event) => {
    const at = event.target;
    if (!isNumber(at)) return;
    const number = spelled(event.clipboardData?.getData("text/plain") ?? "");
    raw = null;
    if (number === null) return;
    event.preventDefault();
    document.execCommand("insertText", false, number);
  };
  const clicked = ({ target }) => {
    if (target.closest('[data-testid="stDataFrame"]')) hold(opening(CLICKED_WITHIN));
  };
  window.addEventListener("keydown", typed, true);
  window.addEventListener("dblclick", clicked);
  window.addEventListener("pointerdown", pressed, true);
  window.addEventListener("focusin", focused);
  window.addEventListener("input", changed, true);
  window.addEventListener("paste", pasted, true);
  return () => {
    window.removeEventListener("keydown", typed, true);
    window.removeEventListener("dblclick", clicked);
    window.removeEventListener("pointerdown", pressed, true);
    window.removeEventListener("focusin", focused);
    window.removeEventListener("input", changed, true);
    window.removeEventListener("paste", pasted, true);
    clearTimeout(timer);
  };
}

/** What a key begins: an input that opens or closes, and how to see that it did. */
function begun(at, event) {
  const { key } = event;
  const now = performance.now();
  if (isInput(at)) {
    if (!leaves(event, at)) return null;
    return { done: () => !at.isConnected, until: now + CLOSES_WITHIN };
  }
  const cell = at.closest('[data-testid="stDataFrame"]') && at.closest('[role="gridcell"]');
  if (!cell || cell.getAttribute("aria-readonly") === "true") return null;
  if (key !== "Enter" && (key.length !== 1 || key === " ")) return null;
  return opening(OPENS_WITHIN);
}

/** An input that opens, stays (the second click may close what the first opened) and marks its text. */
function opening(within) {
  const start = performance.now();
  let [input, since] = [null, start];
  const done = () => {
    const [at, now] = [document.activeElement, performance.now()];
    if (at !== input) [input, since] = [at, now];
    return writes(at) && now - since > SETTLES_WITHIN;
  };
  return { done, until: start + within };
}

/** What was typed with a comma, where its field shows another number. */
function meant(raw, value) {
  const typed = raw ?? "";
  const number = digits(value) === digits(typed) ? spelled(typed) : null; // else more was done to it
  return number === null || value === typed.trim() || Number(value) === Number(number) ? null : number;
}

/** A number with a decimal comma as a field takes it; null for other texts, such as 128,000. */
function spelled(text) {
  const [, sign, whole, after] = /^(-?)(\d+|\d{1,3}(?:\.\d{3})+)?,(\d+)$/.exec(text.trim()) ?? [];
  if (after === undefined || (after.length === 3 && whole && whole !== "0")) return null;
  return `${sign}${whole?.replaceAll(".", "") ?? 0}.${after}`;
}

function isEmpty(at) {
  return !at.value && !at.validity.badInput;
}

function digits(text) {
  return text.replace(/\D/g, "").replace(/^0+/, "");
}

function isNumber(at) {
  return at instanceof HTMLInputElement && at.type === "number";
}

function isInput(at) {
  return Boolean(at?.classList.contains("gdg-input"));
}

function leaves({ key, shiftKey }, at) {
  if (!isInput(at)) return false;
  return LEAVES.has(key) && !(key === "Enter" && shiftKey);
}

function writes(node) {
  return node instanceof HTMLInputElement || node instanceof HTMLTextAreaElement;
}
