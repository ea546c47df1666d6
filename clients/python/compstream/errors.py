"""What a failed call raises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypedDict, cast

if TYPE_CHECKING:
    from .error_codes import ErrorCode


class Fault(TypedDict):
    """One thing that is wrong with a request."""

    code: str
    field: str
    message: str


class CompstreamError(Exception):
    """A call that failed: `operation`, `tries` that were made, and the `idempotency_key` of all of them (None for a read)."""

    def __init__(self, message: str, operation: str, tries: int, idempotency_key: str | None) -> None:
        super().__init__(message)
        self.message = message
        self.operation = operation
        self.tries = tries
        self.idempotency_key = idempotency_key


class ApiError(CompstreamError):
    """The service refused a call."""

    def __init__(
        self,
        status: int,
        headers: Mapping[str, str],
        body: Any,
        operation: str,
        tries: int,
        idempotency_key: str | None,
    ) -> None:
        said: Mapping[str, Any] = body if isinstance(body, dict) else {}

        def text(name: str) -> str | None:
            value = said.get(name)
            return value if isinstance(value, str) else None

        super().__init__(text("message") or f"The service answered {status}", operation, tries, idempotency_key)
        self.status = status
        #: The service's short word, for example `Policy not found`.
        self.error = text("error") or f"HTTP {status}"
        #: The reason as a stable word, an ErrorCode or a newer one; None where the answer is not the service's.
        self.code: ErrorCode | str | None = text("code")
        #: What is at fault, as it was sent; None where that is no single field.
        self.field = text("field")
        #: All that is wrong with the body or the query.
        self.errors: list[Fault] = cast("list[Fault]", said["errors"]) if isinstance(said.get("errors"), list) else []
        #: The page that explains the code.
        self.doc_url = text("doc_url")
        #: The id under which the operator finds the request.
        self.request_id = headers.get("x-request-id")
        #: Seconds after which the service wants to be asked again; None where it does not say.
        self.retry_after = retry_after_of(headers)
        #: The answer's whole body; None when it is no JSON.
        self.body = body


class NoAnswerError(CompstreamError):
    """No answer came: the service was not reached, or took longer than the time limit. `__cause__` tells why."""


def retry_after_of(headers: Mapping[str, str]) -> int | None:
    """`Retry-After` in seconds; None when there is none."""
    text = headers.get("retry-after", "")
    return int(text) if text.isascii() and text.isdigit() else None
