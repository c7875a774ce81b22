// Streamlit's table opens the input of a cell, and closes it, some frames after the key that asks
// for it. Keys in between are held here and handed on, in their order, once it is done.

const OPENS_WITHIN = 1500; // ms: the first input of a kind is loaded when it is first needed
const CLOSES_WITHIN = 1000;
const AT_ONCE = { done: () => true, until: 0 };
const LEAVES = new Set(["Enter", "Tab", "Escape"]);

export default function () {
  const held = [];
  let pending = null; // what the keys wait for
  let timer = 0;

  const watch = () => {
    if (pending.done() || performance.now() > pending.until) pending = null;
    // One key at a time: the table takes in each before it sees the next.
    if (!pending && held.length) hand(held.shift());
    if (pending || held.length) hold(pending ?? AT_ONCE);
  };
  const hold = (found) => {
    pending = found;
    clearTimeout(timer);
    timer = setTimeout(watch, 4);
  };
  const hand = (event) => {
    const at = document.activeElement ?? document.body;
    const found = begun(at, event);
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
    if (pending) {
      if (event.key === "Shift") return;
      event.preventDefault();
      event.stopImmediatePropagation();
      held.push(event);
      return;
    }
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
function begun(at, { key, shiftKey }) {
  const now = performance.now();
  if (at.classList.contains("gdg-input")) {
    if (!LEAVES.has(key) || (key === "Enter" && shiftKey)) return null;
    return { done: () => !at.isConnected, until: now + CLOSES_WITHIN };
  }
  const cell = at.closest('[data-testid="stDataFrame"]') && at.closest('[role="gridcell"]');
  if (!cell || cell.getAttribute("aria-readonly") === "true") return null;
  if (key !== "Enter" && (key.length !== 1 || key === " ")) return null;
  return { done: () => writes(document.activeElement), until: now + OPENS_WITHIN };
}

function writes(node) {
  return node instanceof HTMLInputElement || node instanceof HTMLTextAreaElement;
}
