"""Steps at the store that a test takes beside the page, as the same operator or another."""

from pathlib import Path

from hydra_core.catalog.editing.document import CatalogDocument
from hydra_core.store import Actor, Role, Store, open_store

ROOT = Path(__file__).resolve().parents[2]
NAME = "paper_five_published"
FILE = (ROOT / "catalog" / f"{NAME}.yaml").read_text(encoding="utf-8")
ANA = Actor("Ana", Role.PUBLISHER)
BEN = Actor("Ben", Role.PUBLISHER)
HAIKU = ("models", "claude-haiku-4.5")


def opened(workspace: Path) -> Store:
    return open_store(workspace)


def priced(text: str, price: float, model: str = "claude-haiku-4.5") -> str:
    document = CatalogDocument.parse(text)
    document.set("models", model, "input_usd_per_mtok", price)
    return document.text()


def draft(store: Store, text: str, actor: Actor = ANA) -> None:
    newest = store.newest(NAME)
    base, number = (newest.yaml, newest.number) if newest else (FILE, 0)
    started = store.drafts.start(NAME, base, actor=actor, base_revision=number)
    store.drafts.save(started, text, actor=actor, unfinished=True)


def shown(app: object) -> str:
    """Everything the page says, without Markdown's escapes."""
    parts = []
    for kind in ("markdown", "caption", "error", "warning", "info", "success", "subheader", "code"):
        parts += [f"{getattr(one, 'value', '')}" for one in getattr(app, kind)]
    return "\n".join(parts).replace("\\", "")
