// A step of the story is one entry of the browser's history, so that one press goes one step back.
// Streamlit makes an entry of every change of the address: of what a page tells about itself, and
// of the next step's number before its page. Those take the place of the entry that is there. On a
// busy machine the next page tells about itself, too, before its own name is in the address.

const STEP = /[?&]demo=(\d+)/;
const PASSING_MS = 5000;

export default function () {
  const push = history.pushState;
  let passing = { step: "", until: 0 }; // a step's number that came before its page
  const told = (state, title, url) => {
    const next = new URL(url ?? location.href, location.href);
    const [now, to] = [location.search, next.search].map((one) => STEP.exec(one)?.[1]);
    const here = next.pathname === location.pathname;
    const stays = here && (now === undefined || to === now);
    const arrives = !here && to === passing.step && performance.now() < passing.until;
    if (here && !stays) passing = { step: to, until: performance.now() + PASSING_MS };
    else if (!here || to !== passing.step) passing = { step: "", until: 0 };
    if (stays || arrives) history.replaceState(state, title, url);
    else push.call(history, state, title, url);
  };
  history.pushState = told;
  return () => {
    if (history.pushState === told) history.pushState = push;
  };
}
