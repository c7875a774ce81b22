"""The page Compare."""

from hydra_core.console.compare import page

page.show()
