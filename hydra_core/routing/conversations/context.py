"""What came before a conversation's last user turn, in at most 512 bytes: the context, form 1.

A bundle whose `bundle.yaml` says `input: {conversation: 1}` was trained on it and reads it between
the signal prefix and the message; any other bundle scores the message alone. Serving, playing a
conversation, importing logs and training all take it from here, so that they say the same.

Form 1, the same bytes for the same messages, whatever their language:

1. Items are what a user said (`U`), what the assistant wrote in reply, tool calls as name and
   arguments (`A`), and what tools gave back (`R`), in this order for every turn. Of the last turn
   the user's message is what is scored; what followed it so far is an item. System and developer
   messages, images and empty items are left out.
2. In an item every run of blanks is one space. Of one with more than 120 bytes of UTF-8 the first
   80 and the last 40 are kept, whole characters, with " … " between. (Of more than 4,000 characters
   only the first and the last 2,000 are looked at.)
3. The conversation's first user message is kept always; then the newest items, as many whole ones
   as fit into 512 bytes with it.
4. They are written oldest first, each as a line `U: ...`; the message follows.

The bound is in bytes because a token has about five of them in every script. Claims of difficulty
are looked for at the end of the message alone, as without a context (`predictor/claims.py`).
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from hydra_core.predictor.onnx_predictor import Prediction
from hydra_core.routing.conversations.messages import Conversation, Turn, read_messages
from hydra_core.routing.router import Scorer

MAX_BYTES: Final = 512
_HEAD, _TAIL = 80, 40
_LOOK: Final = 2_000
_GAP: Final = " … "


class LastTurn(NamedTuple):
    """What is scored of a conversation: its last user message, its number from 1, the context."""

    text: str
    turn: int = 1
    context: str = ""


def score_messages(predictor: Scorer, messages: object) -> Prediction:
    """The scores of a conversation's last user turn, (1, K), as a router would have them.

    Args:
        messages: A decoded list of messages in the OpenAI form, or an object that holds one.

    Raises:
        ProblemsError: They are not messages; lists every problem found.
    """
    last = last_turn(read_messages(messages))
    return predictor.predict([last.text], [last.turn], [last.context])


def last_turn(conversation: Conversation) -> LastTurn:
    """The user turn that is to be answered, with what came before it."""
    turns = conversation.turns
    return LastTurn(turns[-1].text, len(turns), context_of(turns))


def context_at(turns: Sequence[Turn], number: int, since: int = 1) -> str:
    """What had come before turn `number`, from 1, of a whole conversation when it was asked.

    The history begins with turn `since`: a compaction leaves nothing from before.
    """
    return context_of((*turns[since - 1 : number - 1], Turn(turns[number - 1].text)))


def context_of(turns: Sequence[Turn]) -> str:
    """Form 1 of all that is in `turns` but for the last user message; '' where nothing is.

    Turns are oldest first, at least one; the last is the one to be scored.
    """
    *before, last = turns
    first = f"U: {_clipped(before[0].text)}\n" if before and before[0].text.strip() else ""
    room = MAX_BYTES - len(first.encode())
    kept: list[str] = []
    for at in range(len(turns) - 1, -1, -1):
        turn = turns[at]
        said = turn.text if turn is not last and at else ""
        for role, text in (("R", turn.results), ("A", turn.answer), ("U", said)):
            if not text.strip():
                continue
            line = f"{role}: {_clipped(text)}\n"
            room -= len(line.encode())
            if room < 0:
                return first + "".join(kept[::-1])
            kept.append(line)
    return first + "".join(kept[::-1])


def _clipped(text: str) -> str:
    """An item on one line: head and tail of a long one."""
    seen = text if len(text) <= 2 * _LOOK else text[:_LOOK] + text[-_LOOK:]
    raw = " ".join(seen.split()).encode("utf-8", "replace")  # lone surrogates become "?"
    if len(raw) <= _HEAD + _TAIL:
        return raw.decode()
    head, tail = (part.decode("utf-8", "ignore") for part in (raw[:_HEAD], raw[-_TAIL:]))
    return f"{head.rstrip()}{_GAP}{tail.lstrip()}"
