"""Overview: what is loaded, where the policy stands, what to do next."""

from __future__ import annotations

import streamlit as st

from hydra_core.console.demo import panel
from hydra_core.console.home import page as overview_panels
from hydra_core.console.home.page import doors

left, right = st.columns([8, 2], vertical_alignment="center")
left.title("Overview", anchor=False)
with right.container(horizontal=True, horizontal_alignment="right"):
    panel.door()
point = overview_panels.place_of_the_point()
doors()
left, right = st.columns([8, 5], gap="medium")
overview_panels.loaded()
found = overview_panels.in_use()
# The browser loads what draws these while the band and the verdicts are computed.
with left:
    complete = overview_panels.frontier(found)
with point.container():
    overview_panels.operating_point(found)
complete()
with right:
    overview_panels.next_steps(found)
