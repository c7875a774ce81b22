"""The page Inspect."""

from hydra_core.console.inspect import page

page.show()
