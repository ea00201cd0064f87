"""Profile full: how a server is listened to for a host that makes a handshake, on servers of both eras."""

from typing import Any

import pytest
from tests.unit.bridge.relay_drive import (
    ASKABLE,
    DOWN,
    PREFIX,
    Drive,
    legacy_server,
    modern_server,
    notification,
    ready,
)

from sam2_mcp_bridge.actions import Listen, Refusal, Result, Server


def test_a_legacy_server_is_listened_to_once_the_host_is_ready_and_says_all_it_likes() -> None:
    drive = Drive()
    drive.request(0, "initialize", {"capabilities": {"elicitation": {}}})
    drive.connected(legacy_server())
    assert drive.sends == []
    drive.notify("notifications/initialized")
    wanted = {f"{kind}ListChanged": True for kind in ("tools", "prompts", "resources")}
    assert drive.sends == [Listen(1, {"notifications": wanted})]
    drive.lines.clear()
    changed = notification("notifications/tools/list_changed")
    own = notification("notifications/odd/own", a=1)
    done = notification("notifications/elicitation/complete", elicitationId="e")
    for message in (changed, own, done, {"jsonrpc": "2.0", "id": 1, "result": {}}):
        drive.stream(message)
    assert drive.messages == [changed, own, done]


@pytest.mark.parametrize(
    ("server", "capabilities", "listens"),
    [
        (legacy_server({"tools": {}}), {}, False),
        (legacy_server({"tools": {}}), ASKABLE, True),
        (legacy_server({"tools": {}, "logging": {}}), {}, True),
        (legacy_server({"tools": {"listChanged": True}}), {}, True),
        (modern_server({"tools": {}}), ASKABLE, False),
        (modern_server({"tools": {"listChanged": True}}), {}, True),
    ],
)
def test_nobody_listens_to_a_server_that_has_nothing_to_say(
    server: Server, capabilities: dict[str, Any], listens: bool
) -> None:
    drive = ready(server, capabilities)
    assert bool(drive.sends) is listens
    drive.notify("notifications/elicitation/complete")
    drive.request(1, "tools/list")
    drive.stream(notification("notifications/elicitation/complete", elicitationId="e"))
    assert bool(drive.messages) is bool(capabilities)


def test_subscriptions_of_the_host_join_the_one_to_a_modern_server() -> None:
    drive = ready(modern_server({"resources": {"subscribe": True}}))
    assert drive.sends == []
    drive.request(1, "resources/subscribe", {"uri": "a:1"})
    drive.request(2, "resources/subscribe", {"uri": "a:2"})
    assert drive.aborted == [1] and drive.newest == Listen(
        2, {"notifications": {"resourceSubscriptions": ["a:1", "a:2"]}}
    )
    drive.lines.clear()
    tag = {PREFIX + "subscriptionId": 9}
    drive.stream(notification("notifications/subscriptions/acknowledged", _meta=tag, notifications={}))
    drive.stream(notification("notifications/resources/updated", uri="a:1", _meta=tag))
    drive.stream(notification("notifications/resources/updated", uri="a:1", _meta=tag | {"x": 1}))
    assert [message["params"] for message in drive.messages] == [{"uri": "a:1"}, {"uri": "a:1", "_meta": {"x": 1}}]
    for id_value, uri in ((3, "a:1"), (4, "a:2")):
        drive.request(id_value, "resources/unsubscribe", {"uri": uri})
    assert drive.open == {}


def test_a_stream_that_ends_is_opened_again_after_pauses_that_grow() -> None:
    drive = ready(legacy_server())
    opened_s = []
    for _ in range(9):
        drive.answer(DOWN)
        count = len(drive.sends)
        while len(drive.sends) == count:
            drive.wait(0.25)
        opened_s.append(drive.now_s)
    pauses_s = [b - a for a, b in zip([100, *opened_s], opened_s, strict=False)]
    assert pauses_s == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    drive.stream(notification("notifications/tools/list_changed"))
    drive.answer(Result({}))
    drive.wait(1)
    assert len(drive.sends) == count + 2


def test_a_server_that_refuses_to_be_listened_to_is_not_asked_again_but_its_successor_is() -> None:
    drive = ready(legacy_server())
    drive.answer(Refusal({"code": -32601, "message": "no"}))
    drive.wait(1000)
    assert len(drive.sends) == 1
    drive.take(drive.relay.met(legacy_server(), drive.now_s))
    assert len(drive.sends) == 2


def test_a_server_that_comes_back_in_the_other_era_is_listened_to_in_its_way() -> None:
    drive = ready(legacy_server())
    (old,) = drive.sends
    drive.take(drive.relay.met(legacy_server(), drive.now_s))
    assert drive.sends == [old], "the stream of a server that is like the former one finds its way itself"
    drive.take(drive.relay.met(modern_server(), drive.now_s))
    assert drive.aborted == [old.call] and isinstance(drive.newest, Listen)
