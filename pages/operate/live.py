"""The page Live."""

from hydra_core.console.live import page

page.show()
