// Streamlit's table opens the input of a cell, and closes it, some frames after the key that asks
// for it. Keys in between are held here and handed on, in their order, once it is done.

const OPENS_WITHIN = 1500; // ms: the first input of a kind is loaded when it is first needed
const CLOSES_WITHIN = 1000;
const SETTLES_WITHIN = 60; // until then an input may not know its own last key
const AT_ONCE = { done: () => true, until: 0 };
const LEAVES = new Set(["Enter", "Tab", "Escape"]);

export default function () {
  const held = [];
  let pending = null; // what the keys wait for
  let written = 0; // when the last one went into an input
  let timer = 0;

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
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (pending || (leaves(event, event.target) && !settled())) {
      if (event.key === "Shift") return;
      event.preventDefault();
      event.stopImmediatePropagation();
      held.push(event);
      if (!pending) hold(AT_ONCE);
      return;
    }
    written = performance.now();
    const found = begun(event.target, event);
    if (found) hold(found);
  };
  window.addEventListener("keydown", typed, true);
  return () => {
    window.removeEventListener("keydown", typed, true);
    clearTimeout(timer);
  };
}

/** What a key begins: an input that opens or closes, and how to see that it did. */
function begun(at, event) {
  const { key } = event;
  const now = performance.now();
  if (at.classList.contains("gdg-input")) {
    if (!leaves(event, at)) return null;
    return { done: () => !at.isConnected, until: now + CLOSES_WITHIN };
  }
  const cell = at.closest('[data-testid="stDataFrame"]') && at.closest('[role="gridcell"]');
  if (!cell || cell.getAttribute("aria-readonly") === "true") return null;
  if (key !== "Enter" && (key.length !== 1 || key === " ")) return null;
  return { done: () => writes(document.activeElement), until: now + OPENS_WITHIN };
}

function leaves({ key, shiftKey }, at) {
  if (!at?.classList.contains("gdg-input")) return false;
  return LEAVES.has(key) && !(key === "Enter" && shiftKey);
}

function writes(node) {
  return node instanceof HTMLInputElement || node instanceof HTMLTextAreaElement;
}
