"""HyDRA console: page set-up and navigation, nothing else."""

from __future__ import annotations

import streamlit as st

from hydra_core.base.shipped import LOGO, MARK
from hydra_core.console import widgets
from hydra_core.console.access import identity
from hydra_core.console.components.figure_files import figure_files
from hydra_core.console.demo import address
from hydra_core.console.demo import panel as demo
from hydra_core.store.roles import Action

telling = demo.arrive()
st.set_page_config(
    page_title="Demo of HyDRA" if telling else "HyDRA console",
    page_icon=str(MARK),
    layout="wide",
    initial_sidebar_state=264 if telling or address.asked() else 208,
)
st.logo(str(LOGO), icon_image=str(MARK), size="large")

PAGES = {
    "Operate": [
        st.Page(
            "pages/operate/overview.py",
            title="Overview",
            icon=":material/dashboard:",
            url_path="home",
            default=True,
        ),
        st.Page(
            lambda: st.switch_page(  # its own address is /
                "pages/operate/overview.py", query_params=st.query_params.to_dict()
            ),
            title="Overview",
            url_path="overview",
            visibility="hidden",
        ),
        st.Page(
            "pages/operate/inspect.py",
            title="Inspect",
            icon=":material/troubleshoot:",
            url_path="inspect",
        ),
        st.Page(
            "pages/operate/conversation.py",
            title="Conversation",
            icon=":material/forum:",
            url_path="conversation",
        ),
        st.Page(
            "pages/operate/live.py", title="Live", icon=":material/monitoring:", url_path="live"
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
            "pages/configure/profiles.py",
            title="Profiles",
            icon=":material/radar:",
            url_path="profiles",
        ),
    ],
    "Evaluate": [
        st.Page("pages/evaluate/tune.py", title="Tune", icon=":material/tune:", url_path="tune"),
        st.Page(
            "pages/evaluate/tuner.py",
            title="Tuner",
            icon=":material/auto_awesome:",
            url_path="tuner",
        ),
        st.Page(
            "pages/evaluate/learn.py",
            title="Learn",
            icon=":material/school:",
            url_path="learn",
        ),
        st.Page(
            "pages/evaluate/eval_sets.py",
            title="Eval sets",
            icon=":material/dataset:",
            url_path="eval_sets",
        ),
        st.Page(
            "pages/evaluate/explore.py",
            title="Explore",
            icon=":material/travel_explore:",
            url_path="explore",
        ),
        st.Page(
            "pages/evaluate/compare.py",
            title="Compare",
            icon=":material/compare_arrows:",
            url_path="compare",
        ),
        st.Page(
            "pages/evaluate/robustness.py",
            title="Robustness",
            icon=":material/gpp_maybe:",
            url_path="robustness",
        ),
        st.Page(
            "pages/evaluate/labels.py",
            title="Labels",
            icon=":material/label:",
            url_path="labels",
        ),
        st.Page(
            "pages/evaluate/audit.py",
            title="Audit",
            icon=":material/rate_review:",
            url_path="audit",
        ),
        st.Page(
            "pages/evaluate/flight.py",
            title="Flight",
            icon=":material/flight_takeoff:",
            url_path="flight",
        ),
    ],
    "Ship": [
        st.Page(
            "pages/ship/export.py",
            title="Ship",
            icon=":material/rocket_launch:",
            url_path="export",
        ),
    ],
}

widgets.legible()
if not identity.may(Action.READ):
    page = st.navigation(PAGES, position="hidden")
else:
    page = st.navigation(PAGES, position="top" if telling else "sidebar", expanded=True)
identity.gate()
if telling:
    demo.margin(page.title)
identity.badge()
with st.sidebar:
    figure_files()
if not demo.offered():
    page.run()
    address.keep()
