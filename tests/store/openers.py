"""What other processes do in tests; in a module of its own so that they can import it."""

import multiprocessing

import sqlalchemy as sa

from hydra_core.store import open_store

CONTEXT = multiprocessing.get_context("forkserver")


def open_once(url, barrier, results):
    """Open the store together with others and tell its catalogs."""
    barrier.wait(30)
    store = open_store(url=sa.make_url(url))
    results.put(store.catalogs())
    store.close()
