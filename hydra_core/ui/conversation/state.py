"""What the Conversation page plays, and how. No link: conversations are private."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hydra_core.routing.conversations.conversation import Options
from hydra_core.routing.conversations.messages import Conversation
from hydra_core.types import StickyMode
from hydra_core.ui.state import Remembered
from hydra_core.views import samples

__all__ = ["Playing", "get", "load_scene", "put"]


@dataclass(frozen=True, slots=True)
class Playing:
    """A conversation and what happens during it.

    Attributes:
        catalog: Key of the catalog, '' for the default.
        scene: Id of the shipped conversation, '' for the operator's own.
        own: The operator's own conversation, once one has been read.
        mode: The mode whose turns are listed.
        tau: None for the catalog's own, or that of the policy being tuned.
        threshold: Sticky threshold gamma, None for the catalog's.
        cached_share: Cached input price as a share of the input price, where none is named.
    """

    catalog: str = ""
    scene: str = ""
    own: Conversation | None = None
    mode: StickyMode = StickyMode.PER_SESSION
    images: tuple[int, ...] = ()
    compacted: tuple[int, ...] = ()
    health: Mapping[str, float] = field(default_factory=dict)
    health_from: int = 2
    threshold: float | None = None
    answer_tokens: int = 0
    cached_share: float = 0.1

    @property
    def conversation(self) -> Conversation | None:
        """What is played; None before an own conversation has been given."""
        if not self.scene:
            return self.own
        return next(s.conversation for s in samples.scenes() if s.id == self.scene)

    def options(self, mode: StickyMode) -> Options:
        """How one mode is played."""
        return Options(
            mode=mode,
            images=frozenset(self.images),
            compacted=frozenset(self.compacted),
            health=self.health,
            health_from=self.health_from,
            answer_tokens=self.answer_tokens,
        )


def _first(link: Mapping[str, str]) -> Playing:
    """The first shipped conversation, whatever the link says."""
    del link
    scene = samples.scenes()[0]
    return Playing(scene=scene.id, images=scene.images, compacted=scene.compacted)


_PLAYING = Remembered("conversation", _first)
get, put = _PLAYING.get, _PLAYING.put


def load_scene(scene_id: str) -> None:
    """Play a shipped conversation with what happens in it."""
    scene = next(s for s in samples.scenes() if s.id == scene_id)
    put(scene=scene.id, images=scene.images, compacted=scene.compacted)
