"""Profile full: subscriptions of a host that has no other way to be told."""

from tests.unit.bridge.relay_drive import (
    DOWN,
    LIMIT_S,
    PREFIX,
    Drive,
    contact,
    envelope,
    legacy_server,
    modern_server,
    notification,
    server_request,
)

from sam2_mcp_bridge.actions import Listen, Result
from sam2_mcp_bridge.errors import Failure


def test_a_subscription_to_a_modern_server_is_passed_on_under_the_host_s_id() -> None:
    drive = contact(modern_server())
    params = {"_meta": envelope(), "notifications": {"toolsListChanged": True, "odd": 1}}
    drive.request("sub", "subscriptions/listen", params)
    assert drive.newest == Listen(drive.newest.call, params)
    upstream = {PREFIX + "subscriptionId": 99, "x": 1}
    drive.stream(notification("notifications/subscriptions/acknowledged", notifications={}, _meta=upstream))
    drive.stream(notification("notifications/odd"))
    acknowledged, odd = drive.messages
    assert acknowledged["params"]["_meta"] == {PREFIX + "subscriptionId": "sub", "x": 1}
    assert odd["params"]["_meta"] == {PREFIX + "subscriptionId": "sub"}
    drive.wait(10_000)
    drive.answer(Result({"resultType": "complete", "_meta": upstream}))
    assert drive.message["result"]["_meta"] == {PREFIX + "subscriptionId": "sub", "x": 1}


def test_a_subscription_whose_stream_breaks_ends_with_an_error() -> None:
    drive = contact(modern_server())
    drive.modern("sub", "subscriptions/listen", notifications={})
    drive.answer(Failure("connection_broken", where="there"))
    assert drive.message["error"]["data"]["reason"] == "connection_broken"


def test_a_cancelled_subscription_is_closed() -> None:
    drive = contact(modern_server())
    drive.modern("sub", "subscriptions/listen", notifications={})
    drive.notify("notifications/cancelled", requestId="sub")
    assert drive.aborted == [drive.newest.call] and drive.messages == []


def test_subscriptions_to_a_legacy_server_share_its_one_stream() -> None:
    drive = contact(legacy_server())
    drive.modern("tools", "subscriptions/listen", notifications={"toolsListChanged": True, "odd": True})
    acknowledged = drive.message
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert acknowledged["params"] == {
        "notifications": {"toolsListChanged": True},
        "_meta": {PREFIX + "subscriptionId": "tools"},
    }
    first = drive.newest
    assert first == Listen(first.call, {"notifications": {"toolsListChanged": True}})
    wanted = {"toolsListChanged": True, "promptsListChanged": False, "resourceSubscriptions": ["a:/dir", 5]}
    drive.modern("more", "subscriptions/listen", notifications=wanted)
    assert drive.message["params"]["notifications"] == {"toolsListChanged": True, "resourceSubscriptions": ["a:/dir"]}
    assert drive.aborted == [first.call]
    assert isinstance(drive.newest, Listen)
    assert drive.newest.params["notifications"] == {"toolsListChanged": True, "resourceSubscriptions": ["a:/dir"]}
    heard = []
    for message in (
        notification("notifications/tools/list_changed"),
        notification("notifications/prompts/list_changed"),
        notification("notifications/resources/updated", uri="a:/dir/file"),
        notification("notifications/resources/updated", uri="a:/directory"),
    ):
        drive.stream(message)
        heard.append([one["params"]["_meta"][PREFIX + "subscriptionId"] for one in drive.messages])
    assert heard == [["tools", "more"], [], ["more"], []]
    drive.stream(server_request(1, "roots/list"))
    assert drive.replies[-1]["error"]["code"] == -32601
    for id_value in ("more", "tools"):
        drive.notify("notifications/cancelled", requestId=id_value)
    assert drive.open == {} and drive.messages == []


def test_a_subscription_waits_for_the_server_but_not_for_ever() -> None:
    drive = Drive()
    drive.modern("sub", "subscriptions/listen", notifications=5)
    drive.connected(DOWN)
    assert drive.message["error"]["data"]["reason"] == "unreachable"
    drive.modern("sub", "subscriptions/listen", notifications=5)
    drive.wait(LIMIT_S)
    assert drive.message["error"]["data"]["reason"] == "no_contact"
    drive.connected(legacy_server({}))
    drive.modern("sub", "subscriptions/listen", notifications=5)
    assert drive.message["params"]["notifications"] == {}
    assert drive.newest == Listen(drive.newest.call, {"notifications": {}})
