"""Overview: what is loaded, where the policy stands, what to do next."""

from __future__ import annotations

import streamlit as st

from hydra_core.ui.demo import panel
from hydra_core.ui.overview import panels as overview_panels

left, right = st.columns([8, 2], vertical_alignment="center")
left.title("Overview", anchor=False)
with right.container(horizontal=True, horizontal_alignment="right"):
    panel.door()
overview_panels.operating_point()
overview_panels.doors()
left, right = st.columns([8, 5], gap="medium")
with left:
    overview_panels.frontier()
with right:
    overview_panels.next_steps()
overview_panels.loaded()
