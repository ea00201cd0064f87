"""The two eras of MCP on the host's side, as pure translation.

Legacy: 2024-11-05 to 2025-11-25, a handshake and then a session. Modern: 2026-07-28, an envelope in each request.
Knows how messages look in each; knows nothing of order, time, or what is under way (relay.py).
"""

from __future__ import annotations

from typing import Any

from sam2_mcp_bridge import __version__
from sam2_mcp_bridge.actions import HANDSHAKE_VERSIONS, MODERN_VERSION, OWN_HOST, Host, Server, as_object
from sam2_mcp_bridge.host.framing import INVALID_PARAMS, METHOD_NOT_FOUND, UNSUPPORTED_VERSION

# What the modern era calls INVALID_PARAMS.
RESOURCE_NOT_FOUND = -32002

_NAMESPACE = "io.modelcontextprotocol/"
VERSION_KEY = _NAMESPACE + "protocolVersion"
CAPABILITIES_KEY = _NAMESPACE + "clientCapabilities"
INFO_KEY = _NAMESPACE + "clientInfo"
LOG_LEVEL_KEY = _NAMESPACE + "logLevel"
SERVER_INFO_KEY = _NAMESPACE + "serverInfo"
SUBSCRIPTION_KEY = _NAMESPACE + "subscriptionId"

MODERN_ONLY = frozenset({"server/discover", "subscriptions/listen"})
LEGACY_ONLY = frozenset({"ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"})

# Results that must say how long they may be kept.
_CACHEABLE = frozenset({"server/discover", "resources/read", "tools/list", "prompts/list", "resources/list"})
_CACHEABLE |= {"resources/templates/list"}

# What a server may ask of a host, and the capability with which the host offers it.
_OFFERED_BY = {"sampling/createMessage": "sampling", "elicitation/create": "elicitation", "roots/list": "roots"}
# What the host may turn such a request into (2025-11-25).
_OFFERED_BY |= {f"tasks/{verb}": "tasks" for verb in ("get", "result", "list", "cancel")}

_LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

# Subscription filter, the capability behind it, and the notification.
_LISTS = {
    f"{kind}ListChanged": (kind, f"notifications/{kind}/list_changed") for kind in ("tools", "prompts", "resources")
}

# Promised to a legacy host while there is no server yet, so that it can be told once there is one.
PROVISIONAL_CAPABILITIES: dict[str, Any] = {kind: {"listChanged": True} for kind, _ in _LISTS.values()}

SUPPORTED_VERSIONS = [MODERN_VERSION]


def meta_of(params: Any) -> dict[str, Any]:
    return as_object(as_object(params).get("_meta"))


def with_meta(message: dict[str, Any], **entries: Any) -> dict[str, Any]:
    """These params, or this result, with entries of `_meta` replaced."""
    return message | {"_meta": as_object(message.get("_meta")) | entries}


def error(code: int, message: str, **data: Any) -> dict[str, Any]:
    return {"code": code, "message": message} | ({"data": data} if data else {})


def not_supported() -> dict[str, Any]:
    """What a server hears that asks the host for what it does not offer."""
    return error(METHOD_NOT_FOUND, "not supported by this client")


def not_found(method: str) -> dict[str, Any]:
    return error(METHOD_NOT_FOUND, f"Method not found: {method}")


def legacy_host(params: Any) -> Host:
    """The host as its initialize describes it."""
    given = as_object(params)
    version, info = given.get("protocolVersion"), given.get("clientInfo")
    wanted = version if version in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
    return Host(wanted, as_object(given.get("capabilities")), _identity(info))


def modern_host(params: Any) -> Host | dict[str, Any]:
    """The host as the envelope describes it, or the error object that a wrong envelope gets."""
    meta = meta_of(params)
    version, capabilities = meta.get(VERSION_KEY), meta.get(CAPABILITIES_KEY)
    if not isinstance(version, str):
        return error(INVALID_PARAMS, f"Invalid params: _meta must hold {VERSION_KEY}")
    if version not in SUPPORTED_VERSIONS:
        words = "Unsupported protocol version"
        return error(UNSUPPORTED_VERSION, words, supported=SUPPORTED_VERSIONS, requested=version)
    if not isinstance(capabilities, dict):
        return error(INVALID_PARAMS, f"Invalid params: _meta must hold {CAPABILITIES_KEY}, an object")
    return Host(version, capabilities, _identity(meta.get(INFO_KEY)))


def _identity(info: Any) -> dict[str, Any]:
    """A host may keep its name to itself, but servers want one: then it is the bridge that speaks."""
    given = as_object(info)
    return given if {"name", "version"} <= given.keys() else OWN_HOST.info


def offers(host: Host, method: str) -> bool:
    """Whether the host has declared that a server may ask this of it."""
    capability = _OFFERED_BY.get(method)
    return capability is not None and isinstance(host.capabilities.get(capability), dict)


def initialize_result(server: Server | None, host: Host) -> dict[str, Any]:
    """What a legacy host is told about the server, or about a server that is not there yet."""
    own_info = {"name": "sam2-mcp", "version": __version__}
    if server is None:
        return {"protocolVersion": host.version, "capabilities": PROVISIONAL_CAPABILITIES, "serverInfo": own_info}
    if not server.modern:
        return server.raw | {"protocolVersion": server.version}
    result: dict[str, Any] = {"capabilities": server.capabilities, "serverInfo": server.info or own_info}
    result |= {} if server.instructions is None else {"instructions": server.instructions}
    return {"protocolVersion": host.version} | result


def discover_result(server: Server) -> dict[str, Any]:
    """What a modern host is told about a legacy server."""
    result: dict[str, Any] = {"supportedVersions": SUPPORTED_VERSIONS, "capabilities": server.capabilities}
    result |= {} if server.instructions is None else {"instructions": server.instructions}
    return modern_result("server/discover", result, server)


def modern_result(method: str, result: dict[str, Any], server: Server) -> dict[str, Any]:
    """The result of a legacy server as a modern host wants it."""
    caching = {"ttlMs": 0, "cacheScope": "private"} if method in _CACHEABLE else {}
    stamp = {SERVER_INFO_KEY: server.info} if server.info else {}
    return with_meta({"resultType": "complete"} | caching | result, **(stamp | as_object(result.get("_meta"))))


def modern_error(given: dict[str, Any]) -> dict[str, Any]:
    """The error of a legacy server as a modern host wants it."""
    return given | {"code": INVALID_PARAMS} if given["code"] == RESOURCE_NOT_FOUND else given


def input_required(requests: dict[str, dict[str, Any]], state: str) -> dict[str, Any]:
    """Requests of a legacy server, as the result with which a modern host is asked."""
    asked = {
        key: {name: request[name] for name in ("method", "params") if name in request}
        for key, request in requests.items()
    }
    return {"resultType": "input_required", "inputRequests": asked, "requestState": state}


def is_loud_enough(level: Any, wanted: str | None) -> bool:
    """Whether a log message of this level may be passed to a host that wants messages from `wanted` on."""
    if wanted is None:
        return False
    known = level in _LOG_LEVELS and wanted in _LOG_LEVELS
    return not known or _LOG_LEVELS.index(level) >= _LOG_LEVELS.index(wanted)


def is_quiet_at(level: str | None, server: Server | None, told: str | None) -> bool:
    """Whether a legacy server, which logs for all requests alike, has not been told to log from this level on."""
    if level is None or server is None or server.modern or "logging" not in server.capabilities:
        return False
    return not is_loud_enough(level, told)


def offered_filter(server: Server) -> dict[str, Any]:
    """The subscription filter for every list that this server reports changes of."""
    return {
        key: True for key, (kind, _) in _LISTS.items() if as_object(server.capabilities.get(kind)).get("listChanged")
    }


def own_stream_filter(host: Host | None, server: Server) -> dict[str, Any] | None:
    """For the stream on which a legacy server may ask a modern host, which has no session; None where it cannot."""
    may_ask = host is not None and not server.modern and any(offers(host, method) for method in _OFFERED_BY)
    return {} if may_ask else None


def honoured_filter(wanted: dict[str, Any], server: Server) -> dict[str, Any]:
    """The part of a host's filter that this server can serve."""
    honoured = {key: True for key in offered_filter(server) if wanted.get(key) is True}
    return honoured | ({"resourceSubscriptions": uris} if can_subscribe(server) and (uris := uris_of(wanted)) else {})


def is_setting(method: str, params: Any) -> bool:
    """Whether these params of a legacy host set something."""
    given = as_object(params)
    return given.get("level") in _LOG_LEVELS if method == "logging/setLevel" else isinstance(given.get("uri"), str)


def setting_error(method: str, params: Any, server: Server) -> dict[str, Any] | None:
    """The error for what a legacy host wants to set with this request, where a modern server could not be told."""
    means_something = "logging" in server.capabilities if method == "logging/setLevel" else can_subscribe(server)
    if not means_something:
        return not_found(method)
    words = f"one of {', '.join(_LOG_LEVELS)} as level" if method == "logging/setLevel" else "a uri"
    return None if is_setting(method, params) else error(INVALID_PARAMS, f"Invalid params: {method} needs {words}")


def can_subscribe(server: Server) -> bool:
    return bool(as_object(server.capabilities.get("resources")).get("subscribe"))


def uris_of(wanted: dict[str, Any]) -> list[str]:
    uris = wanted.get("resourceSubscriptions")
    return [uri for uri in uris if isinstance(uri, str)] if isinstance(uris, list) else []


def united(filters: list[dict[str, Any]]) -> dict[str, Any]:
    """One filter that lets through what any of these does."""
    union: dict[str, Any] = {key: True for key in _LISTS if any(one.get(key) for one in filters)}
    uris = list(dict.fromkeys(uri for one in filters for uri in uris_of(one)))
    return union | ({"resourceSubscriptions": uris} if uris else {})


def lets_through(wanted: dict[str, Any], notification: dict[str, Any]) -> bool:
    method = notification["method"]
    if method == "notifications/resources/updated":
        uri = str(as_object(notification.get("params")).get("uri"))
        # A server may report a part of what was subscribed to.
        return any(uri == one or uri.startswith(one.rstrip("/") + "/") for one in uris_of(wanted))
    return any(wanted.get(key) and method == name for key, (_, name) in _LISTS.items())


def list_changes(capabilities: dict[str, Any]) -> list[dict[str, Any]]:
    """The notifications that every list has changed, as far as the host was told to expect them."""
    return [
        {"jsonrpc": "2.0", "method": name}
        for kind, name in _LISTS.values()
        if as_object(capabilities.get(kind)).get("listChanged")
    ]


def tagged(message: dict[str, Any], subscription_id: str | int) -> dict[str, Any]:
    """The notification as one of the subscription that this id opened."""
    return message | {"params": with_meta(as_object(message.get("params")), **{SUBSCRIPTION_KEY: subscription_id})}


def untagged(message: dict[str, Any]) -> dict[str, Any]:
    """The notification without the tag of a subscription, which a legacy host has not opened."""
    params = as_object(message.get("params"))
    if SUBSCRIPTION_KEY not in meta_of(params):
        return message
    meta = {key: value for key, value in meta_of(params).items() if key != SUBSCRIPTION_KEY}
    rest = {key: value for key, value in params.items() if key != "_meta"} | ({"_meta": meta} if meta else {})
    return {key: value for key, value in message.items() if key != "params"} | ({"params": rest} if rest else {})
