"""Translation between the eras, whatever the messages hold."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.bridge.relay_drive import INFO, PREFIX, legacy_server, modern_server, notification

from sam2_mcp_bridge.actions import HANDSHAKE_VERSIONS, Host
from sam2_mcp_bridge.full import eras

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3),
)
objects = st.dictionaries(st.text(max_size=5) | st.sampled_from(["_meta", "resultType", "ttlMs"]), anything)
uris = st.sampled_from(["a:", "a:/b", "a:/b/c", "x:y"])
filters = st.fixed_dictionaries(
    {},
    optional={
        "toolsListChanged": anything,
        "promptsListChanged": st.booleans(),
        "resourcesListChanged": st.just(True),
        "resourceSubscriptions": st.lists(uris) | anything,
        "odd": anything,
    },
)
kinds = st.sampled_from(["tools/list_changed", "prompts/list_changed", "resources/list_changed", "odd"])
notices = st.one_of(
    kinds.map(lambda kind: notification(f"notifications/{kind}")),
    uris.map(lambda uri: notification("notifications/resources/updated", uri=uri)),
)


@given(objects, st.sampled_from(["tools/call", "tools/list", "server/discover"]))
def test_a_result_made_modern_loses_nothing_that_the_server_said(result: dict[str, Any], method: str) -> None:
    made = eras.modern_result(method, result, legacy_server())
    assert {key: made[key] for key in result if key != "_meta"} == {k: v for k, v in result.items() if k != "_meta"}
    assert made["_meta"][PREFIX + "serverInfo"] == INFO or PREFIX + "serverInfo" in result["_meta"]
    assert "resultType" in made and ("ttlMs" in made or method == "tools/call")


@given(st.dictionaries(st.sampled_from(["uri", "_meta"]), anything), st.integers() | st.text())
def test_a_tag_of_a_subscription_goes_as_it_came(params: dict[str, Any], subscription: int | str) -> None:
    message = notification("notifications/odd", **params)
    tagged = eras.tagged(message, subscription)
    assert tagged["params"]["_meta"][PREFIX + "subscriptionId"] == subscription
    bare = eras.untagged(tagged)
    assert eras.meta_of(bare.get("params")) == eras.meta_of(params)
    assert {**bare.get("params", {}), "_meta": 0} == {**params, "_meta": 0}
    assert eras.untagged(bare) == bare


@given(st.lists(filters), notices)
def test_a_union_lets_through_what_one_of_its_filters_does(all_of_them: list[dict[str, Any]], message: Any) -> None:
    anyone = any(eras.lets_through(one, message) for one in all_of_them)
    assert eras.lets_through(eras.united(all_of_them), message) == anyone


@given(filters, notices)
def test_what_is_honoured_is_a_part_of_what_was_wanted(wanted: dict[str, Any], message: Any) -> None:
    honoured = eras.honoured_filter(wanted, legacy_server())
    assert not eras.lets_through(honoured, message) or eras.lets_through(wanted, message)
    assert eras.honoured_filter(wanted, legacy_server({})) == {}


@given(
    anything | st.fixed_dictionaries({"protocolVersion": anything, "capabilities": anything, "clientInfo": anything})
)
def test_any_handshake_describes_a_host(params: Any) -> None:
    host = eras.legacy_host(params)
    assert host.version in HANDSHAKE_VERSIONS and isinstance(host.capabilities, dict) and host.info


@given(anything)
def test_any_envelope_describes_a_host_or_is_an_error(meta: Any) -> None:
    found = eras.modern_host({"_meta": meta})
    assert isinstance(found, dict) and found["code"] == -32602


@pytest.mark.parametrize("value", [None, 5, True, [], "x"])
def test_a_capability_is_an_object(value: Any) -> None:
    host = Host("2025-11-25", {"roots": value, "sampling": {}, "": {}}, {})
    assert not eras.offers(host, "roots/list") and eras.offers(host, "sampling/createMessage")
    assert not eras.offers(host, "odd/method")


def test_lists_that_changed_are_told_only_where_the_host_expects_it() -> None:
    assert eras.list_changes({"tools": {"listChanged": True}, "prompts": {"listChanged": False}, "resources": 5}) == [
        notification("notifications/tools/list_changed")
    ]
    assert eras.offered_filter(modern_server({"tools": {"listChanged": True}})) == {"toolsListChanged": True}
