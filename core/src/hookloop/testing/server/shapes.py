"""The error bodies of the three APIs, and of servers that copy one of them."""

from __future__ import annotations

from typing import Any

from .record import Api, Violation

_MESSAGES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_OPENAI = {401: "invalid_request_error", 429: "requests", 500: "server_error", 503: "server_error"}


def type_of(api: Api, status: int) -> str:
    """The error type that the API gives with this status."""
    if api == "messages":
        return _MESSAGES.get(status, "invalid_request_error" if status < 500 else "api_error")
    return _OPENAI.get(status, "invalid_request_error" if status < 500 else "server_error")


def error_body(api: Api, fault: Violation, request_id: str, profile: str | None = None) -> Any:
    """The JSON that a server answers with: nested for the vendors, flat for Mistral, a list for Gemini."""
    kind = fault.type or type_of(api, fault.status)
    if api == "messages":
        return {"type": "error", "error": {"type": kind, "message": fault.message}, "request_id": request_id}
    if profile == "mistral":
        flat = {"object": "error", "message": fault.message, "type": kind, "param": fault.param}
        return {**flat, "code": fault.code or str(fault.status)}
    if profile == "gemini":
        return [{"error": {"code": fault.status, "message": fault.message, "status": "INVALID_ARGUMENT"}}]
    return {"error": {"message": fault.message, "type": kind, "param": fault.param, "code": fault.code}}


def request_id_header(api: Api) -> str:
    """The header that carries the request's id."""
    return "request-id" if api == "messages" else "x-request-id"
