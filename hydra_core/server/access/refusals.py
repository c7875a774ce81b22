"""Which answer each error becomes."""

from __future__ import annotations

import logging
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from hydra_core.base.errors import AccessError, HydraError, ProblemsError, RoutingError
from hydra_core.server.access.admission import OverloadedError
from hydra_core.server.access.doors import StrangerError, TooOftenError
from hydra_core.server.access.feedback import UnknownDecisionError
from hydra_core.server.access.limits import BodyTooLargeError, BodyTooSlowError
from hydra_core.server.answers import ClientGoneError, error_response
from hydra_core.server.teams import BudgetSpentError
from hydra_core.server.wire.forms import form_of_path

_LOG = logging.getLogger(__name__)


async def _refused(request: Request, error: Exception) -> Response:
    status = next(code for kind, code in _STATUS if isinstance(error, kind))
    headers = {}
    if isinstance(error, BodyTooLargeError | BodyTooSlowError):
        headers["connection"] = "close"  # what is left of the body is not read
    if isinstance(error, RoutingError):
        status = error.http_status
    if isinstance(error, TooOftenError | OverloadedError | BudgetSpentError):
        headers["retry-after"] = str(max(1, round(error.wait_s)))
    if isinstance(error, StrangerError):
        headers["www-authenticate"] = "Bearer"
    if status >= 500 and not isinstance(error, OverloadedError):
        _LOG.error("%s", error)
    return error_response(status, str(error), headers, form=form_of_path(request.url.path))


async def _gone(request: Request, error: Exception) -> Response:
    return Response(status_code=499)


async def _fault(request: Request, error: Exception) -> Response:
    message = "the router failed on this request; its log says why"
    return error_response(500, message, form=form_of_path(request.url.path))


_STATUS = (
    (BodyTooLargeError, 413),
    (BodyTooSlowError, 408),
    (OverloadedError, 503),
    (TooOftenError, 429),
    (StrangerError, 401),
    (AccessError, 403),
    (ProblemsError, 400),
    (UnknownDecisionError, 404),
    (RoutingError, 500),
    (HydraError, 409),
)
HANDLERS: dict[Any, Any] = {
    HydraError: _refused,
    ClientDisconnect: _gone,
    ClientGoneError: _gone,
    Exception: _fault,
}
