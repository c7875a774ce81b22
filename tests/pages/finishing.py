"""Pages whose work goes on in the background."""

import time

from hydra_core.console import replays


def finished(app):
    """The page once its work is done, also the work that begins when other work is done."""
    for _ in range(600):
        if not _working():
            app.run()
            if not _working():
                return app.run()
        time.sleep(0.1)
    raise AssertionError("it did not end")


def _working():
    return any(task.running for task in replays.tasks()._tasks.values())
