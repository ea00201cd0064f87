"""Whatever values a host or a server puts into its messages, the relay goes on and every request is answered."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.bridge.relay_drive import LIMIT_S, PREFIX, Drive, envelope, legacy_server, modern_server

from sam2_mcp_bridge.actions import Refusal, Result, Server
from sam2_mcp_bridge.full.asking import INPUT_LIMIT_S

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=3), children, max_size=3),
)


def odd(*names: str) -> st.SearchStrategy[dict[str, Any]]:
    """An object that may have these members, with any values."""
    return st.fixed_dictionaries({}, optional=dict.fromkeys(names, anything))


meta = odd("progressToken", PREFIX + "logLevel", PREFIX + "subscriptionId", PREFIX + "serverInfo") | anything
asked = st.dictionaries(st.text(max_size=3), odd("method", "params") | st.just({"method": "roots/list"}) | anything)
names = ("progressToken", "level", "uri", "requestId", "notifications", "elicitationId", "reason")
server_messages = st.fixed_dictionaries(
    {
        "method": st.sampled_from(["progress", "message", "cancelled", "tools/list_changed", "resources/updated"]).map(
            lambda kind: f"notifications/{kind}"
        )
        | st.sampled_from(["roots/list", "elicitation/create", "ping", ""])
        | anything
    },
    optional={"params": st.fixed_dictionaries({"_meta": meta}, optional=dict.fromkeys(names, anything)) | anything}
    | {"id": anything},
)
results = st.fixed_dictionaries(
    {}, optional={"resultType": st.just("input_required") | anything, "inputRequests": asked | anything}
) | odd("_meta", "requestState", "ttlMs")
errors = st.fixed_dictionaries({"code": st.integers(), "message": st.text(max_size=3)}, optional={"data": anything})
methods = st.sampled_from(
    ["tools/call", "initialize", "logging/setLevel", "resources/subscribe", "server/discover", "subscriptions/listen"]
)
params = st.one_of(
    anything,
    st.fixed_dictionaries({"_meta": meta}, optional=dict.fromkeys(("name", "uri", "level", "notifications"), anything)),
    st.fixed_dictionaries(
        {"_meta": st.just(envelope())},
        optional={"inputResponses": anything, "requestState": anything, "notifications": anything},
    ),
    odd("protocolVersion", "capabilities", "clientInfo"),
)
capabilities = odd("tools", "prompts", "resources", "logging")


@pytest.mark.parametrize("make", [legacy_server, modern_server])
@given(
    capabilities,
    st.lists(st.tuples(methods, params), max_size=5),
    st.lists(server_messages, max_size=5),
    st.lists(results.map(Result) | errors.map(Refusal), max_size=5),
)
def test_any_values_are_survived(
    make: Any, offered: dict[str, Any], asked_of_us: list[Any], streamed: list[Any], answers: list[Any]
) -> None:
    drive, server = Drive(), make(offered)
    assert isinstance(server, Server)
    drive.handshake(server)
    for id_value, (method, given_params) in enumerate(asked_of_us):
        drive.request(id_value, method, given_params)
        if drive.connects:
            drive.connected(server)
    for message in streamed:
        for call in list(drive.open):
            if call in drive.open:
                drive.stream({"jsonrpc": "2.0", **message}, call)
    for answer in answers:
        if drive.open:
            drive.answer(answer)
    drive.notify("notifications/odd", a=streamed)
    drive.wait(2 * INPUT_LIMIT_S + LIMIT_S)
    answered = [message["id"] for message in drive.messages if "method" not in message and message["id"] != "init"]
    subscribed = [number for number, (method, _) in enumerate(asked_of_us) if method == "subscriptions/listen"]
    assert len(answered) == len(set(answered))
    assert set(range(len(asked_of_us))) - set(answered) <= set(subscribed)
