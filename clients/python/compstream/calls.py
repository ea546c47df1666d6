"""Calls of operations: credentials, retries under one key, pages."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import random
import re
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any, Literal
from urllib.parse import quote, urlencode, urlsplit

from .errors import ApiError, NoAnswerError, retry_after_of

_FIRST_DELAY = 0.25
_MAX_DELAY = 10.0
#: Statuses of what may go better the next time.
_PASSING = frozenset((429, 500, 502, 503, 504))


@dataclass(frozen=True)
class Operation:
    """An operation of an API, as its description says."""

    name: str
    method: str
    #: With parameters in braces.
    path: str
    credentials: Literal["client", "connection", "none"]
    takes_key: bool
    #: Answers `{ok, data}`.
    wrapped: bool
    paged_by: Literal["page", "from"] | None
    #: The media type of its answers, where they are bytes instead of JSON.
    produces: str | None = None


@dataclass(frozen=True)
class Try:
    """One try of a call; `status` is None when no answer came."""

    operation: str
    number: int
    status: int | None
    request_id: str | None
    replayed: bool
    seconds: float


@dataclass(frozen=True)
class _Answer:
    status: int
    headers: Mapping[str, str]
    body: Any


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Secrets go nowhere else."""

    def redirect_request(self, req: Any, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str) -> None:
        raise urllib.error.URLError("the service answered with a redirect")


class Client:
    """What the clients of all hosts share. Times are in seconds.

    `timeout` is for one try, `total` for a call with all its tries, `retries` counts the tries after the first.
    ValueError for a base_url that is no http or https address.
    """

    def __init__(
        self,
        base_url: str,
        client_id: str | None = None,
        client_secret: str | None = None,
        *,
        sign_requests: bool = False,
        connection_secret: str | None = None,
        timeout: float = 30.0,
        total: float = 120.0,
        retries: int = 5,
        now: Callable[[], float] = time.time,
        on_try: Callable[[Try], None] | None = None,
    ) -> None:
        if urlsplit(base_url).scheme not in ("http", "https"):
            raise ValueError("base_url takes an http or https address")
        self._base_url = base_url.rstrip("/")
        self._client_id = client_id
        self._client_secret = client_secret
        self._sign_requests = sign_requests
        self._connection_secret = connection_secret
        self._timeout = timeout
        self._total = total
        self._retries = retries
        self._now = now
        self._on_try = on_try
        self._opener = urllib.request.build_opener(_NoRedirects())

    def call(
        self,
        operation: Operation,
        parameters: Mapping[str, Any],
        body: Any,
        idempotency_key: str | None,
        timeout: float | None,
        total: float | None,
    ) -> Any:
        """What the service answers, without the envelope. ApiError, NoAnswerError; ValueError for what can never be sent."""
        answer = self._call(operation, parameters, body, idempotency_key, timeout, total)
        return answer["data"] if operation.wrapped else answer

    def each(
        self,
        operation: Operation,
        parameters: Mapping[str, Any],
        body: Any,
        idempotency_key: str | None,
        timeout: float | None,
        total: float | None,
    ) -> Iterator[Any]:
        """Every element of a list that is answered in pages; a page is read when it is needed."""
        place = operation.paged_by
        if place is None:
            raise ValueError(f"{operation.name} does not answer in pages")
        at: Any = parameters.get(place) or (1 if place == "page" else None)
        while True:
            answer = self._call(operation, {**parameters, place: at}, body, idempotency_key, timeout, total)
            yield from answer["data"]
            pagination = answer.get("pagination") or {}
            if place == "page":
                if not pagination.get("has_more"):
                    return
                at = int(at) + 1
            else:
                at = pagination.get("next")
                if at is None:
                    return

    def page(
        self,
        operation: Operation,
        parameters: Mapping[str, Any],
        body: Any,
        idempotency_key: str | None,
        timeout: float | None,
        total: float | None,
    ) -> Any:
        """One page of such a list as `data`, and as `pagination` which part of the list it is."""
        return self._call(operation, parameters, body, idempotency_key, timeout, total)

    def _call(
        self,
        operation: Operation,
        parameters: Mapping[str, Any],
        body: Any,
        idempotency_key: str | None,
        timeout: float | None,
        total: float | None,
    ) -> Any:
        key = idempotency_key if idempotency_key is not None or not operation.takes_key else str(uuid.uuid4())
        if key is not None and not (isinstance(key, str) and re.fullmatch(r"[\x21-\x7e]{1,255}", key)):
            raise ValueError("idempotency_key takes a string of 1 to 255 visible ASCII characters")
        may_repeat = operation.method == "GET" or key is not None
        address = self._address(operation, parameters)
        payload = None if body is None else json.dumps(body, allow_nan=False).encode()
        deadline = time.monotonic() + (self._total if total is None else total)
        tries = 0
        while True:
            tries += 1
            headers = {
                "Accept": ", ".join(filter(None, ("application/json", operation.produces))),
                # signatures are good for 5 minutes
                **self._credentials(operation, payload or b""),
            }
            if payload is not None:
                headers["Content-Type"] = "application/json"
            if key is not None:
                headers["Idempotency-Key"] = key
            for name, value in headers.items():
                if not re.fullmatch(r"[\x20-\x7e]*", value):
                    raise ValueError(f"The value for {name} has characters that no header can have, such as a line break")
            started = time.monotonic()
            limit = min(self._timeout if timeout is None else timeout, max(0.001, deadline - started))
            answer: _Answer | None = None
            problem: ApiError | NoAnswerError
            try:
                request = urllib.request.Request(address, payload, headers, method=operation.method)
                answer = self._exchange(request, limit, operation.produces is not None)
                if answer.status < 400 and answer.body is not None:
                    return answer.body
                problem = ApiError(answer.status, answer.headers, answer.body, operation.name, tries, key)
            except (OSError, http.client.HTTPException) as cause:
                reason = cause.reason if isinstance(cause, urllib.error.URLError) else cause
                why = "in time" if isinstance(reason, TimeoutError) else f"({reason})"
                problem = NoAnswerError(f"No answer to {operation.name} {why}", operation.name, tries, key)
                problem.__cause__ = cause
            finally:
                if self._on_try is not None:
                    known = {} if answer is None else answer.headers
                    self._on_try(
                        Try(
                            operation.name,
                            tries,
                            None if answer is None else answer.status,
                            known.get("x-request-id"),
                            known.get("idempotent-replayed") == "true",
                            time.monotonic() - started,
                        )
                    )
            passes = answer is None or answer.status in _PASSING
            unharmed = may_repeat or (answer is not None and answer.status == 429)
            wait = _wait_before(tries, answer)
            if not passes or tries > self._retries or not unharmed or time.monotonic() + wait >= deadline:
                raise problem
            time.sleep(wait)

    def _exchange(self, request: urllib.request.Request, limit: float, has_bytes: bool) -> _Answer:
        ends = time.monotonic() + limit
        try:
            response = self._opener.open(request, timeout=limit)
        except urllib.error.HTTPError as refusal:
            response = refusal
        with response:
            parts: list[bytes] = []
            while part := response.read(65536):
                parts.append(part)
                if time.monotonic() > ends:
                    raise TimeoutError
            headers = {name.lower(): value for name, value in response.headers.items()}
            content = b"".join(parts)
            if has_bytes and response.status < 400:
                return _Answer(response.status, headers, content)
            return _Answer(response.status, headers, _parsed(content))

    def _address(self, operation: Operation, parameters: Mapping[str, Any]) -> str:
        in_path = re.findall(r"\{(\w+)\}", operation.path)
        path = operation.path
        for name in in_path:
            value = parameters.get(name)
            if value is None or value == "":
                raise ValueError(f"{name} is required")
            path = path.replace(f"{{{name}}}", quote(_text(value), safe=""))
        query = {
            name: _text(value) for name, value in parameters.items() if name not in in_path and value is not None
        }
        return f"{self._base_url}{path}{'?' + urlencode(query) if query else ''}"

    def _credentials(self, operation: Operation, payload: bytes) -> dict[str, str]:
        if operation.credentials == "none":
            return {}
        now = str(int(self._now() * 1000))
        if operation.credentials == "connection":
            secret = _required(self._connection_secret, "connection_secret")
            return {"X-Webhook-Timestamp": now, "X-Webhook-Signature": _signed(secret, now, payload)}
        secret = _required(self._client_secret, "client_secret")
        headers = {"X-Client-ID": _required(self._client_id, "client_id"), "X-Client-Secret": secret}
        if self._sign_requests:
            headers.update({"X-Timestamp": now, "X-Signature": _signed(secret, now, payload)})
        return headers


def _wait_before(tries: int, answer: _Answer | None) -> float:
    """Seconds before the next try: what the service asks for, else longer every time; neither the same for all callers."""
    asked = None if answer is None else retry_after_of(answer.headers)
    if asked is not None:
        return asked + random.random() * _FIRST_DELAY
    most: float = min(_MAX_DELAY, _FIRST_DELAY * 2.0**tries)
    return most / 2 + random.random() * most / 2


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return None


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _signed(secret: str, timestamp: str, payload: bytes) -> str:
    return hmac.new(secret.encode(), f"{timestamp}.".encode() + payload, hashlib.sha256).hexdigest()


def _required(value: str | None, name: str) -> str:
    if value is None:
        raise ValueError(f"This call needs the client's {name}")
    return value
