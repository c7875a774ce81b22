// A page that is opened completes its own address, and Streamlit makes each address an entry of the
// history. Back would then lead to the address before, which is completed at once: the operator
// stays where they are. So what a page tells about itself before anything on it was pressed takes
// its entry's place, and so does the page that a former address leads to. A link that is pressed
// leads away: what the page still tells then is no entry either, however slow the console is.
// A browser that is busy runs this late. What was pressed before counts as a link. An entry that was
// made before, and that Back leads to and the page completes to the address that Back left, is
// passed over.

export default function () {
  if (window.hydraPushState) return; // once a tab
  const push = (window.hydraPushState = history.pushState.bind(history));
  const replace = history.replaceState.bind(history);
  let here = location.href;
  let pressed = navigator.userActivation?.hasBeenActive ? "link" : ""; // since the page was opened: nothing, a "link", or something on the "page"
  let left = ""; // the address that a link was pressed on, where it has changed since
  let back = ""; // the address that Back or Forward has just left

  const opened = () => (pressed = left = back = "");
  const told = (state, title, url) => {
    const now = new URL(location.href);
    const then = new URL(url ?? now, now);
    if (now.pathname === then.pathname) {
      if (pressed === "page") return push(state, title, url);
      if (pressed === "link") left ||= now.href;
      return history.replaceState(state, title, url);
    }
    // a new page's parameters may come before its path: the entry they made becomes the page's
    const early = then.search !== "" && then.search === now.search;
    if (early && left) replace(state, title, left);
    if (!pressed || (early && pressed === "page")) replace(state, title, url);
    else push(state, title, url);
    opened();
  };
  history.pushState = (...address) => {
    told(...address);
    here = location.href;
  };
  history.replaceState = (...address) => {
    replace(...address);
    const completed = here !== location.href;
    here = location.href;
    if (completed && !pressed && here === back) history.back();
  };
  const press = (event) => (pressed = event.target?.closest?.("a[href]") ? "link" : "page");
  for (const event of ["pointerdown", "keydown", "click"])
    window.addEventListener(event, press, true);
  window.addEventListener(
    "popstate",
    () => {
      opened();
      [back, here] = [here, location.href];
    },
    true,
  );
}
