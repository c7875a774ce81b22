"""Other routers, learned and replayed on the same queries as HyDRA."""

from hydra_core.replay.baselines.run import BASELINES, BaselineRun, run_baselines

__all__ = ["BASELINES", "BaselineRun", "run_baselines"]
