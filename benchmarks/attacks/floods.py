"""Very many hostile messages, and very long descriptions of a bundle."""

import shutil
import tempfile
import time
from pathlib import Path

from hydra_core.base.errors import BundleError
from hydra_core.base.shipped import CATALOGS
from hydra_core.catalog import load_catalog
from hydra_core.predictor.bundle import MANIFEST, SHIPPED, load_bundle
from hydra_core.predictor.onnx_predictor import default_predictor
from hydra_core.routing.router import Router
from tests.hostile_messages import hostile_messages
from tests.routing.test_hostile import attack

_MEGABYTE = 1_000_000
#: What a bundle.yaml of a megabyte may hold.
LONG = {
    "comments": "# x\n" * (_MEGABYTE // 4),
    "values": "x: [" + "1," * (_MEGABYTE // 2) + "]\n",
    "keys": "".join(f"k{number}: 1\n" for number in range(100_000)),
    "depth": "x: " + "[" * _MEGABYTE,
    "one scalar": "x: '" + "a" * _MEGABYTE + "'\n",
    "quotes": 'x: "' + "\\x41" * (_MEGABYTE // 4) + '"\n',
}


def flood(count):
    """CPU seconds of the slowest of `count` messages through the shipped predictor."""
    catalog = load_catalog(CATALOGS / "paper_eight.yaml")
    messages = hostile_messages(count)
    seconds, chosen = attack(Router(catalog, default_predictor()), catalog, messages)
    assert sum(chosen.values()) == count
    return float(seconds.max())


def long_manifests(limit_s=1.0):
    """(tries, slowest seconds) to refuse a bundle whose manifest has a megabyte.

    Also just under the limit on bytes, so that the reader itself is tried.
    """
    slowest, tries = 0.0, 0
    with tempfile.TemporaryDirectory() as folder:
        bundle = shutil.copytree(SHIPPED, Path(folder) / "bundle")
        for text in LONG.values():
            for size in (_MEGABYTE, 99_000):
                (bundle / MANIFEST).write_text(text[:size])
                began = time.perf_counter()
                try:
                    load_bundle(bundle)
                except BundleError:
                    pass
                else:
                    raise AssertionError("a bundle of nothing was opened")
                slowest, tries = max(slowest, time.perf_counter() - began), tries + 1
    assert slowest < limit_s, f"{slowest:.2f} s"
    return tries, slowest
