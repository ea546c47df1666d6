"""A typed client of the core API and the payments API, and a check for webhooks."""

from .calls import Try
from .core_api import CoreClient
from .error_codes import ErrorCode
from .errors import ApiError, CompstreamError, NoAnswerError
from .payments_api import PaymentsClient
from .webhook_events import WEBHOOK_EVENT_TYPES, WebhookEvent
from .webhooks import WebhookVerificationError, verify_webhook

__all__ = [
    "WEBHOOK_EVENT_TYPES",
    "ApiError",
    "CompstreamError",
    "CoreClient",
    "ErrorCode",
    "NoAnswerError",
    "PaymentsClient",
    "Try",
    "WebhookEvent",
    "WebhookVerificationError",
    "verify_webhook",
]
