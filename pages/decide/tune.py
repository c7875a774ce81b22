"""The page Tune."""

from hydra_core.console.tune import page

page.show()
