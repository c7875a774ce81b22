"""Tables with units; numbers stay numbers so that they sort and export."""

from __future__ import annotations

import pandas as pd
import streamlit as st

__all__ = ["languages", "policies"]

_PERCENT = "%.1f %%"
_USD = "$%.4f"


def languages(frame: pd.DataFrame) -> None:
    """QR, CS and cost by language with 95 % bounds; small samples are marked."""
    column = st.column_config
    shown = frame.assign(
        qr_range=_range(frame, "qr", "{:.1f} – {:.1f}"),
        cs_range=_range(frame, "cs", "{:.1f} – {:.1f}"),
        cost_range=_range(frame, "cost", "{:.4f} – {:.4f}"),
        note=frame["small"].map({True: "small sample", False: ""}),
    )
    st.dataframe(
        shown,
        hide_index=True,
        height="content",
        column_order=(
            "language", "n", "qr", "qr_range", "cs", "cs_range", "cost", "cost_range", "note",
        ),
        column_config={
            "language": "Language",
            "n": column.NumberColumn("Queries", format="localized"),
            "qr": column.NumberColumn("QR", format=_PERCENT),
            "qr_range": "95 % interval",
            "cs": column.NumberColumn("Savings", format=_PERCENT),
            "cs_range": "95 % interval ",
            "cost": column.NumberColumn("Cost per query", format=_USD),
            "cost_range": "95 % interval  ",
            "note": "",
        },
    )  # fmt: skip


def policies(frame: pd.DataFrame) -> None:
    """The router beside the oracle, the constant at its cost and every single model."""
    column = st.column_config
    st.dataframe(
        frame,
        hide_index=True,
        height="content",
        column_config={
            "policy": column.TextColumn("Policy", width="medium"),
            "detail": column.TextColumn("What it is", width="medium"),
            "quality": column.NumberColumn("Quality", format=_PERCENT),
            "qr": column.NumberColumn("QR", format=_PERCENT),
            "cost": column.NumberColumn("Cost per query", format=_USD),
            "cs": column.NumberColumn("Savings", format=_PERCENT),
            "misroute": column.NumberColumn("Misrouted", format=_PERCENT),
        },
    )


def _range(frame: pd.DataFrame, name: str, template: str) -> list[str]:
    bounds = zip(frame[f"{name}_lo"], frame[f"{name}_hi"], strict=True)
    return [template.format(low, high) for low, high in bounds]
