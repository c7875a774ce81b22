"""HyDRA console: page set-up and navigation, nothing else."""

import streamlit as st

from hydra_core.base.shipped import LOGO, MARK
from hydra_core.console import frame, widgets
from hydra_core.console.access import identity
from hydra_core.console.browser import back_button, cell_typing, figure_files
from hydra_core.console.demo import panel as demo
from hydra_core.store.roles import Action

in_demo = demo.arrive()
st.set_page_config(
    page_title="Demo of HyDRA" if in_demo else "HyDRA console",
    page_icon=str(MARK),
    layout="wide",
    initial_sidebar_state=264 if in_demo or frame.demo_asked() else 208,
)
st.logo(str(LOGO), icon_image=str(MARK), size="large")

PAGES = {
    "Operate": [
        st.Page(
            frame.HOME.page, title="Home", icon=":material/home:", url_path="home", default=True
        ),
        st.Page(
            "pages/operate/live.py", title="Live", icon=":material/monitoring:", url_path="live"
        ),
        st.Page(
            "pages/operate/inspect.py",
            title="Inspect",
            icon=":material/troubleshoot:",
            url_path="inspect",
        ),
    ],
    "Configure": [
        st.Page(
            "pages/configure/catalog.py",
            title="Catalog",
            icon=":material/view_list:",
            url_path="catalog",
        ),
        st.Page(
            "pages/configure/eval_sets.py",
            title="Eval sets",
            icon=":material/dataset:",
            url_path="eval_sets",
        ),
    ],
    "Decide": [
        st.Page("pages/decide/tune.py", title="Tune", icon=":material/tune:", url_path="tune"),
        st.Page(
            "pages/decide/compare.py",
            title="Compare",
            icon=":material/compare_arrows:",
            url_path="compare",
        ),
        st.Page(
            "pages/decide/releases.py",
            title="Releases",
            icon=":material/rocket_launch:",
            url_path="releases",
        ),
    ],
}
FORMER = [
    st.Page(frame.redirect(name), title=name, url_path=name, visibility="hidden")
    for name in frame.MOVED
]

widgets.legible()
if not identity.may(Action.READ):
    page = st.navigation({**PAGES, "": FORMER}, position="hidden")
else:
    page = st.navigation(
        {**PAGES, "": FORMER}, position="top" if in_demo else "sidebar", expanded=True
    )
identity.gate()
if in_demo:
    demo.sidebar(page.title)
identity.badge()
with st.sidebar:
    back_button()
    cell_typing()
    figure_files()
if not demo.offered():
    page.run()
    frame.keep_address()
