"""The check of a webhook."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal, TypeAlias, cast

from .webhook_events import REQUIRED_FIELDS, Event, WebhookEvent

_PREFIX = "whsec_"
Reason: TypeAlias = Literal["missing_header", "wrong_time", "wrong_signature", "not_json", "wrong_type"]


class WebhookVerificationError(Exception):
    """A request that is not, or not provably, a delivery of the service: answer 400 and do nothing."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason: Reason = reason


def verify_webhook(
    payload: str | bytes,
    headers: Mapping[str, str],
    secret: str | Sequence[str],
    *,
    tolerance: float = 300.0,
    now: Callable[[], float] = time.time,
) -> WebhookEvent:
    """Checks that a delivery comes from the service, is fresh, and is as it was sent: both signatures that it carries.

    `payload` is the raw body, exactly as it was received; `secret` that of the subscription, several around a rotation;
    `tolerance` in seconds. No signature binds the type, so what a type never lacks is looked for in the body:
    `subscription.created` and `subscription.cancelled` look alike, go by `data["status"]`.
    WebhookVerificationError; ValueError for a secret that is none.
    """
    body = payload.encode() if isinstance(payload, str) else payload
    given = {name.lower(): value for name, value in headers.items()}

    def header(name: str) -> str:
        value = given.get(name)
        if not value:
            raise WebhookVerificationError("missing_header", f"The delivery has no header {name}")
        return value

    event_id, event_type = header("x-webhook-id"), header("x-webhook-event")
    timestamp, signature = header("x-webhook-timestamp"), header("x-webhook-signature")
    standard_id, standard_time = header("webhook-id"), header("webhook-timestamp")
    standard_signatures = header("webhook-signature").split(" ")
    is_time = re.fullmatch(r"[0-9]{1,15}", timestamp) is not None
    if not is_time or abs(now() * 1000 - int(timestamp)) > tolerance * 1000:
        raise WebhookVerificationError("wrong_time", "The delivery is not from just now")
    is_signed = False
    for one in (secret,) if isinstance(secret, str) else secret:
        key = _key_of(one)
        own = hmac.new(one.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()
        digest = hmac.new(key, f"{standard_id}.{standard_time}.".encode() + body, hashlib.sha256).digest()
        standard = f"v1,{base64.b64encode(digest).decode()}"
        matches = [_is_equal(some, standard) for some in standard_signatures]
        is_signed = (_is_equal(signature.lower(), own) and any(matches)) or is_signed
    if not is_signed or standard_id != event_id or standard_time != str(int(timestamp) // 1000):
        raise WebhookVerificationError("wrong_signature", "The delivery is not signed with this secret")
    try:
        data = json.loads(body)
    except ValueError as error:
        raise WebhookVerificationError("not_json", "The body of the delivery is no JSON") from error
    if not isinstance(data, dict) or any(name not in data for name in REQUIRED_FIELDS.get(event_type, ())):
        raise WebhookVerificationError("wrong_type", "The body is not of the type that it comes as")
    sent_at = datetime.fromtimestamp(int(timestamp) / 1000, UTC)
    return cast(WebhookEvent, Event(event_id, event_type, data, sent_at))


def _key_of(secret: str) -> bytes:
    """The bytes that a secret encodes. ValueError when it is none; it is not quoted."""
    encoded = secret.removeprefix(_PREFIX)
    if not secret.startswith(_PREFIX) or re.fullmatch(r"[A-Za-z0-9+/]+={0,2}", encoded) is None:
        raise ValueError(f"A secret begins with {_PREFIX}: take it as it was shown")
    unpadded = encoded.rstrip("=")
    return base64.b64decode(unpadded + "=" * (-len(unpadded) % 4))


def _is_equal(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())
