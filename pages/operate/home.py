"""The page Home."""

from hydra_core.console.home import page

page.show()
