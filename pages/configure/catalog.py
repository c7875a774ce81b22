"""Catalog: the pool of models, edited as a draft, with what each edit would change."""

from __future__ import annotations

from hydra_core.console.catalog import page

page.draft_page("Catalog", page.VIEWS, page.show)
