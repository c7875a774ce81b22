"""Why a model did not answer, how long its upstream asks to be left alone, and how healthy it is.

A failure's kind says whether the model's health suffers, and what the client gets in the end.
"""

import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

from hydra_core.base.json_values import json_or_none, mapping
from hydra_core.server.wire import Form

#: Every kind of failure, in the words of log and metrics.
KINDS: Final = (
    "rate_limited", "server_error", "refused_key", "forbidden", "no_credit", "unknown_model",
    "too_long", "flagged", "unsupported", "bad_answer", "timeout", "connection", "broke_off",
    "retry_later",
)  # fmt: skip
#: The kind of an upstream's word that the request itself is wrong: no failure of the model.
REJECTED: Final = "rejected"
#: Kinds that say something about the request, and nothing about the model's health.
OF_REQUESTS: Final = (REJECTED, "too_long", "flagged", "unsupported")
#: Longest wait that an upstream can ask for.
_LONGEST_WAIT_S: Final = 3_600.0
#: An error is read up to this size; longer ones are not shown to a client either.
_MOST_BYTES: Final = 64_000
_BY_STATUS: Final = {
    401: "refused_key",
    402: "no_credit",
    403: "forbidden",
    404: "unknown_model",
    405: "unknown_model",
    407: "refused_key",
    408: "timeout",
    410: "unknown_model",
    425: "rate_limited",
    429: "rate_limited",
    498: "rate_limited",  # Groq: no capacity in its flex tier
}
#: Types and codes of errors that stand for a status.
_STATUS_OF: Final = {
    "authentication_error": 401, "billing_error": 402, "permission_error": 403,
    "not_found_error": 404, "request_too_large": 413, "rate_limit_error": 429,
    "rate_limit_exceeded": 429, "api_error": 500, "server_error": 500, "timeout_error": 504,
    "overloaded_error": 529,
} | dict.fromkeys((
    "invalid_request_error", "invalid_prompt", "bio_policy", "misalignment_policy_violation",
    "invalid_image", "invalid_image_format", "invalid_base64_image", "invalid_image_url",
    "invalid_image_mode", "image_too_large", "image_too_small", "image_parse_error",
    "image_content_policy_violation", "image_file_too_large", "image_file_not_found",
    "unsupported_image_media_type", "empty_image_file", "failed_to_download_image",
), 400)  # fmt: skip
#: What providers say in place of a status of its own -> what it is.
_BY_WORDS: Final = (
    (
        "too_long",
        re.compile(
            r"context_length_exceeded|context_window_exceeded|maximum context length|"
            r"context (?:window|length|size)|(?:prompt|input|request)(?: token count)? (?:is )?"
            r"(?:too long|exceeds)|too many (?:input )?tokens|reduce the length",
        ),
    ),
    ("no_credit", re.compile(r"insufficient_quota|insufficient_credit|credit balance|billing_")),
    ("refused_key", re.compile(r"invalid_api_key|api.key not valid|unauthenticated")),
    (
        "unknown_model",
        re.compile(
            r"model_not_found|invalid_model|deploymentnotfound|unknown model|"
            r"model[^.]{0,80} (?:not found|does not exist)"
        ),
    ),
    (  # by this model; thinking that another provider signed or encrypted
        "unsupported",
        re.compile(
            r"unsupported_(?:parameter|value)|(?:with|by|on|for) this model|model does not support|"
            r"maximum allowed number of output tokens|this model (?:does not support|supports at)|"
            r"invalid_encrypted_content|signature\W{1,4}field required|"
            r"invalid \W{0,4}signature\W{0,4} in \W{0,4}thinking"
        ),
    ),
)
#: Words of a 403 that is about what the client wrote.
_FLAGGED: Final = re.compile(r"flagged_input|was flagged|requires moderation|content.policy")
#: What a 404 may miss in place of the model: something stored that the client named by its id.
_STORED_ID: Final = re.compile(r"\b(?:file|conv|resp|vs|msg|pmpt|cntr|container)[-_]\w{6,}")
_WAIT_IN_WORDS: Final = re.compile(r"(?:try|retry)(?: again)? (?:in|after) (.{0,60})")
#: One part of a wait such as 1h2m3.5s or "2 minutes".
_PART_OF_WAIT: Final = re.compile(r"(\d+(?:\.\d+)?) ?(ms|mil|[dhm])?[a-z]*,? ?(?:and )?")
_WAIT_KEYS: Final = ("retry_after", "retryAfter", "retry_after_seconds", "retryDelay")
_UNITS: Final = {"ms": 0.001, "mil": 0.001, "m": 60.0, "h": 3_600.0, "d": 86_400.0}


class NotAnsweredError(Exception):
    """A model did not answer.

    Args:
        kind: One of `KINDS`, or `REJECTED`, for which no other model is asked.
        status: What the upstream said, None where it said nothing.
        body: Its answer, for the client when no model answers.
        headers: Its headers that may go on to the client.
        wait_s: How long the upstream asks to be left alone, 0 where it does not say.
    """

    def __init__(
        self,
        kind: str,
        status: int | None = None,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        wait_s: float = 0.0,
    ) -> None:
        self.kind, self.status, self.body, self.headers = kind, status, body, headers or {}
        self.wait_s = wait_s
        super().__init__(kind)


def refusal_of(status: int, body: bytes, asked: Mapping[str, Any] | None = None) -> str | None:
    """The kind of failure that an answer with this status is; None for the client's own mistake.

    Args:
        asked: The request. An error repeats parts of it: words that stand in it prove nothing, or
            one client could have every model taken for ill.
    """
    if status in _BY_STATUS and status not in (403, 404, 429):
        return _BY_STATUS[status]
    if 400 <= status < 600:
        words = json.dumps(decoded(body), ensure_ascii=False).lower()
        known = {404: (("", _STORED_ID),), 403: (*_BY_WORDS, ("flagged", _FLAGGED))}
        signs = {(kind, one[0]): None for kind, sign in known.get(status, _BY_WORDS)
                 for one in sign.finditer(words)}  # fmt: skip
        own = json.dumps(asked, ensure_ascii=False).lower() if asked and signs else ""
        if status == 404:
            return None if any(sign in own for _, sign in signs) else "unknown_model"
        said = next((kind for kind, sign in signs if sign not in own), None)
        if status == 429:
            return said if said == "no_credit" else "rate_limited"
        if status == 413:
            return "too_long"
        return said or _BY_STATUS.get(status) or ("server_error" if status >= 500 else None)
    return "bad_answer"


def error_in(
    found: Mapping[str, Any], asked: Mapping[str, Any] | None = None
) -> NotAnsweredError | None:
    """The error that a decoded answer holds although its status says success, None for none.

    What its code or type says of a status counts like that status; where both say nothing that is
    known, it is a bad answer. `asked` as in `refusal_of`.
    """
    choices = found.get("choices")
    parts = (found, *(choices if isinstance(choices, list) else ()))
    errors = (part.get("error") for part in parts if isinstance(part, Mapping))
    error = next(filter(None, errors), None)
    if not error:
        return None
    said = (mapping(error).get(name) for name in ("code", "status", "type"))
    status = next(filter(None, map(_status, said)), None)
    body = json.dumps({"error": error}, default=str).encode("utf-8", "replace")
    kind = refusal_of(status or 400, body, asked) or (REJECTED if status else "bad_answer")
    status = status or (400 if kind in OF_REQUESTS else None)
    return NotAnsweredError(kind, status, body, wait_s=wait_of({}, body))


def wait_of(headers: Mapping[str, str], body: bytes, now: datetime | None = None) -> float:
    """Seconds that an upstream asks to be left alone, 0 where it does not say; at most an hour.

    Headers (with lower-case names) say it, or a field or message of the body.
    """
    found = _seconds(headers.get("retry-after-ms"), 0.001) or _seconds(headers.get("retry-after"))
    if found is None:
        found = _seconds_until(headers.get("retry-after"), now or datetime.now(UTC))
    if found is None:
        found = next(filter(None, _waits(decoded(body))), None)
    return min(max(found or 0.0, 0.0), _LONGEST_WAIT_S)


def _seconds(value: object, unit: float = 1.0) -> float | None:
    text = str(value).strip().removesuffix("s")
    try:
        seconds = float(text) * unit
    except ValueError:
        return None
    return seconds if 0 <= seconds < 1e9 else None


def _seconds_until(date: str | None, now: datetime) -> float | None:
    try:
        moment = parsedate_to_datetime(date or "")
    except (ValueError, IndexError, OverflowError):
        return None
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - now).total_seconds()


def _waits(value: object, depth: int = 0) -> Iterator[float | None]:
    if depth > 5:
        return
    if isinstance(value, Mapping):
        for key, one in value.items():
            if key in _WAIT_KEYS:
                yield _seconds(one)
            elif key == "message" and isinstance(one, str):
                yield _wait_in_words(one)
            else:
                yield from _waits(one, depth + 1)
    elif isinstance(value, list):
        for one in value[:20]:
            yield from _waits(one, depth + 1)


def _wait_in_words(message: str) -> float | None:
    said = _WAIT_IN_WORDS.search(message[:2_000].lower())
    if said is None:
        return None
    seconds, end = 0.0, 0
    while part := _PART_OF_WAIT.match(said[1], end):
        seconds, end = seconds + float(part[1]) * _UNITS.get(part[2], 1.0), part.end()
    return seconds


def decoded(body: bytes) -> object:
    """The JSON of an error, None where it is none or too long."""
    return json_or_none(body) if 0 < len(body) <= _MOST_BYTES else None


def shown_error(status: int | None, body: bytes, key: str, form: Form) -> bytes:
    """An upstream's error as a client may see it: JSON of a bounded size, without our key."""
    found = decoded(body)
    if not isinstance(found, dict | list):
        message = f"the upstream answered {status or 'nothing'}, without an error to show"
        found = form.error(500, message)
    if form is Form.MESSAGES and isinstance(found, dict):
        found = {"type": "error", **found}
    text = json.dumps(found, ensure_ascii=False)
    for secret in filter(None, (key, json.dumps(key)[1:-1])):
        text = text.replace(secret, "***")
    return text.encode("utf-8", "replace")


def _status(value: object) -> int | None:
    if isinstance(value, str):
        value = _STATUS_OF.get(value) or (int(value[:4]) if value.isdigit() else None)
    known = isinstance(value, int) and not isinstance(value, bool) and 400 <= value < 600
    return value if known else None  # type: ignore[return-value]


_SHARE: Final = 0.6
#: After it half of what is missing to health 1 has come back.
_HALF_LIFE_S: Final = 15.0
#: A model is well while less than this is missing to health 1.
_WELL: Final = 0.05
#: So many failed attempts in a row are an outage.
DOWN_AFTER: Final = 5


class Health:
    """Health of the models one process talks to: what Algorithm 4's veto looks at. Thread-safe.

    A failure moves health in [0, 1] towards 0, an answer towards 1, by the same share; in between
    it decays towards 1, so that a vetoed model is tried again now and then. It is 0 while its
    upstream asks to be left alone.

    With a floor of 0.10, three failures in a row veto a model; about two seconds later it may be
    tried again, and each further failure vetoes it at once.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: dict[str, tuple[float, float]] = {}  # missing to 1, when
        self._failures: dict[str, int] = {}  # in a row
        self._until: dict[str, float] = {}  # end of the wait that its upstream asks for

    def failed(self, model: str, wait_s: float = 0.0) -> bool:
        """The model did not answer; whether it was well before. It is left alone for `wait_s`."""
        with self._lock:
            self._failures[model] = self._failures.get(model, 0) + 1
            missing = self._missing(model)
            self._seen[model] = (missing + _SHARE * (1.0 - missing), self._clock())
            if wait_s > 0:
                until = self._clock() + wait_s
                self._until[model] = max(until, self._until.get(model, 0.0))
            return missing < _WELL

    def wait_s(self, model: str) -> float:
        """Seconds for which the model is not to be asked."""
        return max(0.0, self._until.get(model, 0.0) - self._clock()) if self._until else 0.0

    def down(self) -> frozenset[str]:
        """The models that did not answer for many attempts in a row."""
        if not self._failures:
            return frozenset()
        with self._lock:
            return frozenset(m for m, count in self._failures.items() if count >= DOWN_AFTER)

    def answered(self, model: str) -> None:
        if self._failures:
            self._failures.pop(model, None)
        if model not in self._seen:
            return
        with self._lock:
            missing = self._missing(model) * (1.0 - _SHARE)
            if missing < 1e-3:
                self._seen.pop(model, None)
            else:
                self._seen[model] = (missing, self._clock())

    def now(self) -> Mapping[str, float]:
        """Model -> health; a model that is not in it is healthy."""
        if not self._seen:
            return {}
        with self._lock:
            return {
                model: 0.0 if self.wait_s(model) else 1.0 - self._missing(model)
                for model in self._seen
            }

    def _missing(self, model: str) -> float:
        missing, at = self._seen.get(model, (0.0, 0.0))
        return float(missing * 0.5 ** ((self._clock() - at) / _HALF_LIFE_S))
