"""The page Catalog."""

from hydra_core.console.catalog import page

page.show()
