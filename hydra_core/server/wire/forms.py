"""Names, addresses and error shapes of the forms; nothing is translated from one to another."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any, Final

_TYPES: Final = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error"}
_MESSAGES_TYPES: Final = {
    **_TYPES,
    402: "billing_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}


class Form(StrEnum):
    """A form of requests and answers, as an upstreams file names it."""

    CHAT = "chat"
    MESSAGES = "messages"
    RESPONSES = "responses"

    @property
    def path(self) -> str:
        """Its address below a base URL."""
        return "/chat/completions" if self is Form.CHAT else f"/{self.value}"

    def error(self, status: int, message: str, code: str | None = None) -> dict[str, Any]:
        """An error as clients of this form understand it."""
        types = _MESSAGES_TYPES if self is Form.MESSAGES else _TYPES
        kind = types.get(status, "invalid_request_error" if status < 500 else "api_error")
        if self is Form.MESSAGES:
            return {"type": "error", "error": {"type": kind, "message": message}}
        return {"error": {"message": message, "type": kind, "param": None, "code": code}}

    def error_event(self, message: str) -> bytes:
        """An error in the middle of a stream of events, where no status can be said any more."""
        if self is Form.RESPONSES:
            found: dict[str, Any] = {"type": "error", "code": "server_error", "param": None}
            found |= {"message": message, "sequence_number": 0}
        else:
            found = self.error(502, message)
        named = b"" if self is Form.CHAT else b"event: error\n"
        return named + b"data: " + json.dumps(found).encode() + b"\n\n"


def form_of_path(path: str) -> Form:
    """The form whose address ends a request's path; Chat Completions for every other."""
    return next((form for form in Form if path.endswith(form.path)), Form.CHAT)
