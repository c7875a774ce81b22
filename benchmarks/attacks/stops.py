"""The database server stopped at once (SIGQUIT) while somebody publishes, then started again."""

import contextlib
import time

from benchmarks.speed.store_load import CONTEXT, check, newest, publish_without_end
from hydra_core.base.errors import StoreError
from tests.store.servers import postgres_server


def publish_until_refused(url, acknowledged):
    """Publish until the database is gone."""
    with contextlib.suppress(StoreError):
        publish_without_end(url, acknowledged)


def stop_servers(rounds, rng, longest_s=0.5):
    """(revisions, acknowledged) after `rounds` stops of a durable PostgreSQL server.

    Raises:
        AssertionError: An acknowledged revision is gone, damaged, or a number is missing.
    """
    promised, kept = 0, 0
    with postgres_server(fsync=True) as server:
        url = server.url.replace("postgresql:", "postgresql+psycopg:")
        for _ in range(rounds):
            reader, writer = CONTEXT.Pipe(duplex=False)
            saver = CONTEXT.Process(target=publish_until_refused, args=(url, writer))
            saver.start()
            writer.close()
            reader.poll(60)
            time.sleep(rng.uniform(0, longest_s))
            server.stop_at_once()
            promised = newest(reader, promised)
            saver.join()
            server.start()
            kept = check(url, "kills", promised)
    return kept, promised
