"""The page Eval sets."""

from hydra_core.console.eval_sets import page

page.show()
