"""What `benchmarks.speed.store` does to the store, in functions other processes can import."""

import contextlib
import multiprocessing
import random
import time
from decimal import Decimal

import sqlalchemy as sa

from hydra_core.catalog import CatalogDocument, parse_catalog
from hydra_core.store import Actor, NewerRevisionError, Role, open_store, three_way

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["benchmarks.speed.store_load"])

HEAD = """\
schema: hydra.catalog/v1
name: soak
dimensions: [reasoning]
predictor: {name: tiny, fingerprint: abc123}
bands: {reasoning: [0.2, 0.8]}
policy:
  tau: 0.24  # contested
  weights: {reasoning: 1}
evidence:
  benchmarks:
    - {id: puzzles, importance: 1, weights: {reasoning: 1}}
models:
"""
MODEL = """\
  - id: model-{0:02d}
    provider: acme
    status: active
    input_usd_per_mtok: 1.00  # price of {0}
    output_usd_per_mtok: 2.00
    context_window: 128000
    vision: false
    tools: true
    scores: {{puzzles: 0.5}}
    capabilities: derived
    price_source: soak
    price_date: 2026-01-01
"""


def catalog_text(models):
    """A catalog with one model per editor."""
    return HEAD + "".join(MODEL.format(number) for number in range(models))


def publish_without_end(url, acknowledged):
    """Publish revision after revision, telling each number once it is acknowledged."""
    store = open_store(url=sa.make_url(url))
    actor = Actor("saver", Role.PUBLISHER)
    newest = store.newest("kills")
    number = 0 if newest is None else newest.number
    while True:
        document = CatalogDocument.parse(catalog_text(2))
        document.set("models", "model-00", "output_usd_per_mtok", Decimal(number + 1) / 100)
        made = store.publish(
            "kills", document.text(), actor=actor, base_revision=number, note=f"save {number + 1}"
        )
        number = made.number
        acknowledged.send(number)


def kill_rounds(url, rounds, rng, longest_s=0.15):
    """Kill `rounds` savers; returns (revisions, acknowledged).

    Raises:
        AssertionError: An acknowledged revision is missing, a number is, or a text is damaged.
    """
    open_store(url=sa.make_url(url)).close()
    promised = 0
    for _ in range(rounds):
        reader, writer = CONTEXT.Pipe(duplex=False)
        saver = CONTEXT.Process(target=publish_without_end, args=(url, writer))
        saver.start()
        writer.close()
        if rng.random() < 0.8:  # else it may die while it opens the store
            reader.poll(30)
        time.sleep(rng.random() * longest_s)
        saver.kill()
        promised = newest(reader, promised)
        saver.join()
        reader.close()
        kept = check(url, "kills", promised)
    return kept, promised


def newest(reader, promised):
    """The highest revision acknowledged, after everything that a dead process still sent."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            promised = max(promised, reader.recv())
    return promised


def check(url, catalog, promised):
    """How many revisions there are, after checking that none is missing, damaged or half there."""
    store = open_store(url=sa.make_url(url))
    history = store.history(catalog, limit=1_000_000)  # reading checks each text's digest
    numbers = [revision.number for revision in history]
    assert numbers == list(range(len(numbers), 0, -1)), "a number is missing or double"
    assert len(numbers) >= promised, f"revision {promised} was acknowledged and is gone"
    assert store.catalogs().get(catalog, 0) == len(numbers)
    text = store.audit(catalog, limit=1_000_000)
    assert sorted(entry.revision for entry in text) == numbers[::-1]
    store.close()
    if history:
        parse_catalog(history[0].yaml)
    return len(numbers)


def edit_until(url, number, deadline, seed, results):
    """One editor: raise the own model's price, merge, publish; tell what happened."""
    rng = random.Random(seed)
    store = open_store(url=sa.make_url(url))
    actor = Actor(f"editor-{number:02d}", Role.PUBLISHER)
    counts = {"published": 0, "refused": 0, "contested": 0}
    latencies = []
    while not counts["published"] or time.time() < deadline:  # at least one, however slow
        base = store.newest("soak")
        document = CatalogDocument.parse(base.yaml)
        own = ("models", f"model-{number:02d}", "input_usd_per_mtok")
        document.set(*own, Decimal(str(document.get(*own))) + Decimal("0.01"))
        if rng.random() < 0.2:
            document.set("policy", "tau", round(rng.random(), 6))
        text = document.text()
        while True:
            start = time.perf_counter()
            try:
                store.publish("soak", text, actor=actor, base_revision=base.number, note="")
            except NewerRevisionError as error:
                counts["refused"] += 1
                text, base = _merged(base, text, error.newest, counts), error.newest
                continue
            latencies.append(time.perf_counter() - start)
            counts["published"] += 1
            break
    store.close()
    results.put((number, counts, latencies))


def _merged(base, mine, newest, counts):
    result = three_way(base.yaml, mine, newest.yaml)
    if result.conflicts:
        counts["contested"] += len(result.conflicts)
        theirs = {conflict.path: "theirs" for conflict in result.conflicts}
        result = three_way(base.yaml, mine, newest.yaml, choices=theirs)
    assert result.clean, result.problems
    return result.text


def soak(url, editors, seconds, seed=42):
    """Let `editors` processes edit one catalog; returns what they saw.

    Raises:
        AssertionError: An update got lost, or a number is double or missing.
    """
    store = open_store(url=sa.make_url(url))
    owner = Actor("owner", Role.PUBLISHER)
    store.publish("soak", catalog_text(editors), actor=owner, base_revision=0, note="")
    results, deadline = CONTEXT.Queue(), time.time() + seconds
    people = [
        CONTEXT.Process(target=edit_until, args=(url, n, deadline, seed + n, results))
        for n in range(editors)
    ]
    for person in people:
        person.start()
    seen = dict(
        (number, rest) for number, *rest in (results.get(timeout=seconds + 120) for _ in people)
    )
    for person in people:
        person.join()
    published = sum(counts["published"] for counts, _ in seen.values())
    assert check(url, "soak", published + 1) == published + 1
    final = parse_catalog(store.newest("soak").yaml)
    store.close()
    for number, (counts, _) in seen.items():
        price = final.model(f"model-{number:02d}").input_usd_per_mtok
        expected = float(Decimal("1.00") + counts["published"] * Decimal("0.01"))
        assert price == expected, f"editor {number}: an update got lost, {price} != {expected}"
    waits = sorted(wait for _, latencies in seen.values() for wait in latencies)
    return {
        "editors": editors,
        "seconds": seconds,
        "published": published,
        "refused_then_merged": sum(counts["refused"] for counts, _ in seen.values()),
        "contested_values": sum(counts["contested"] for counts, _ in seen.values()),
        "publish_ms_p50": 1e3 * waits[len(waits) // 2],
        "publish_ms_p95": 1e3 * waits[int(len(waits) * 0.95)],
        "lost": 0,
    }
