"""The page Releases."""

from hydra_core.console.releases import page

page.show()
