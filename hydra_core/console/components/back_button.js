// A page that is opened completes its own address, and Streamlit makes each address an entry of the
// history. Back would then lead to the address without parameters, which is completed at once: the
// operator stays where they are. So what merely completes the address of a page takes its entry's
// place, and so does the page that a former address leads to.

export default function () {
  if (window.hydraPushState) return; // once a tab
  const push = (window.hydraPushState = history.pushState.bind(history));
  let opened = true; // since then, nobody has pressed anything

  history.pushState = (state, title, url) => {
    const now = new URL(location.href);
    const then = new URL(url ?? now, now);
    const same = now.pathname === then.pathname;
    // a new page's parameters may come before its path: the entry they made becomes the page's
    const early = !same && then.search !== "" && then.search === now.search;
    if (early || (opened && (!same || completes(now.searchParams, then.searchParams)))) {
      if (!same) opened = true;
      history.replaceState(state, title, url);
      return;
    }
    push(state, title, url);
    if (!same) opened = true;
  };
  const pressed = () => (opened = false);
  window.addEventListener("pointerdown", pressed, true);
  window.addEventListener("keydown", pressed, true);
  window.addEventListener("popstate", () => (opened = true), true);
}

/** Whether an address keeps every parameter of the one before. */
function completes(before, after) {
  return [...before].every(([name, value]) => after.get(name) === value);
}
