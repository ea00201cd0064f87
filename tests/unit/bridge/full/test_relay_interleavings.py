"""Whatever happens in whatever order: each request gets at most one line, in time, and nothing is written that the
host's era does not allow."""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.unit.bridge.relay_drive import (
    ASKABLE,
    LIMIT_S,
    MAX_LINE_BYTES,
    MAX_PARALLEL,
    PREFIX,
    Drive,
    envelope,
    legacy_server,
    modern_server,
    notification,
    server_request,
)

from sam2_mcp_bridge.actions import Answer, Listen, Refusal, Result, Send
from sam2_mcp_bridge.errors import Failure
from sam2_mcp_bridge.full.asking import INPUT_LIMIT_S
from sam2_mcp_bridge.host.framing import Malformed

SERVERS = {
    "legacy": legacy_server(),
    "bare": legacy_server({}),
    "modern": modern_server(),
    "down": Failure("unreachable", where="there", detail="refused"),
}
METHODS = ["tools/call", "tools/list", "resources/read", "ping", "initialize", "server/discover", "odd"]
METHODS += ["subscriptions/listen", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"]
QUESTIONS = ["elicitation/create", "sampling/createMessage", "roots/list", "ping", "odd"]
NOTICES = ["progress", "message", "tools/list_changed", "resources/updated", "odd", "subscriptions/acknowledged"]

ids = st.sampled_from([1, 2, 3, "1", "a"])
which = st.integers(0, 5)  # of what is there, in order
operations = st.lists(
    st.one_of(
        st.tuples(st.just("request"), ids, st.sampled_from(METHODS), st.booleans(), st.booleans()),
        st.tuples(st.just("retry"), ids, which, st.booleans()),
        st.tuples(st.just("cancel"), ids),
        st.tuples(st.just("initialized")),
        st.tuples(st.just("malformed")),
        st.tuples(st.just("respond"), which, st.booleans()),
        st.tuples(st.just("connected"), st.sampled_from(sorted(SERVERS))),
        st.tuples(st.just("met"), st.sampled_from(["legacy", "bare", "modern"])),
        st.tuples(
            st.just("answer"),
            which,
            st.sampled_from(
                ["result", "refusal", "failure", "huge", "deep", "input", "much input", "foreign input", "state"]
            ),
        ),
        st.tuples(st.just("late"), which),
        st.tuples(st.just("notice"), which, st.sampled_from(NOTICES)),
        st.tuples(st.just("ask"), which, st.sampled_from(QUESTIONS), st.integers(1, 2)),
        st.tuples(st.just("withdraw"), which, st.integers(1, 2)),
        st.tuples(st.just("wait"), st.sampled_from([0.0, 0.3, 3.0, 26.9, 27.0, 61.0, INPUT_LIMIT_S])),
    ),
    min_size=12,  # short scripts find little
    max_size=60,
)


@dataclass
class Open:
    """A request as the host sees it."""

    modern: bool
    method: str
    token: Any
    since_s: float
    takes_up: bool  # a call that another request has made


@dataclass
class Model:
    """What the host knows, and what it may therefore see."""

    drive: Drive = field(default_factory=Drive)
    open: dict[tuple[type, int | str], Open] = field(default_factory=dict)
    refusals: int = 0  # errors that are due for ids which are not, or not only, in flight
    questions: set[int] = field(default_factory=set)
    answered_questions: int = 0
    legacy: bool = False
    wants_logs: bool = False
    told: list[dict[str, Any]] = field(default_factory=list)  # input_required results

    def look(self) -> None:
        """Check every new line."""
        for at_s, message in self.drive.lines:
            if "method" not in message:
                self._response(at_s, message)
            elif "id" in message:
                assert self.legacy, "no request is ever written to a modern host"
                assert message["method"] in QUESTIONS[:3] and message["id"] not in self.questions
                self.questions.add(message["id"])
            else:
                self._notification(message["method"], message.get("params", {}))
        self.drive.lines.clear()

    def _response(self, at_s: float, message: dict[str, Any]) -> None:
        id_value = message["id"]
        one = self.open.get((type(id_value), id_value))
        code = message.get("error", {}).get("code")
        if one is None or (self.refusals and code in (-32600, -32601, -32602, -32022)):
            assert self.refusals, f"nobody waits for {message}"
            self.refusals -= 1
            return
        del self.open[type(id_value), id_value]
        tag = message.get("result", {}).get("tag")
        assert tag is None or tag == one.since_s or one.takes_up
        if one.method != "subscriptions/listen" and not self.questions:
            assert at_s <= one.since_s + LIMIT_S or self.answered_questions
        if one.modern and "result" in message and isinstance(self.drive.relay._server, tuple):
            assert message["result"].get("resultType") or self.drive.relay._server.modern
        if message.get("result", {}).get("resultType") == "input_required" and one.modern:
            self.told.append(message["result"])

    def _notification(self, method: str, params: dict[str, Any]) -> None:
        subscription = params.get("_meta", {}).get(PREFIX + "subscriptionId")
        if method == "notifications/progress":
            assert any(one.token == params["progressToken"] for one in self.open.values())
        elif method == "notifications/message":
            assert self.wants_logs
        elif method == "notifications/cancelled":
            self.questions.remove(params["requestId"])
        elif subscription is not None:
            assert self.open[type(subscription), subscription].method == "subscriptions/listen"
        else:
            assert self.legacy and method != "notifications/subscriptions/acknowledged"


def answer_of(kind: str, send: Send | Listen) -> Answer:
    match kind:
        case "refusal":
            return Refusal({"code": -32002, "message": "no"})
        case "failure":
            return Failure("timeout", where="there")
        case "huge":
            return Result({"text": "x" * MAX_LINE_BYTES})
        case "deep":
            value: Any = 1
            for _ in range(100_000):
                value = [value]
            return Result({"value": value})
        case "input":
            return Result({"resultType": "input_required", "inputRequests": {"k": {"method": "roots/list"}}})
        case "much input":
            large = {"method": "roots/list", "params": {"x": "x" * MAX_LINE_BYTES}}
            requests = {"a": {"method": "roots/list"}, "b": large, "c": large, "d": {"method": "roots/list"}}
            return Result({"resultType": "input_required", "inputRequests": requests})
        case "foreign input":
            return Result({"resultType": "input_required", "inputRequests": {"k": {"method": "odd"}}})
        case "state":
            return Result({"resultType": "input_required", "requestState": "s"})
        case _:
            params = send.params if isinstance(send.params, dict) else {}
            return Result({"tag": params["tag"]} if "tag" in params else {})


@settings(max_examples=500)
@given(operations)
@example([("request", 1, "tools/call", False, False), ("connected", "bare"), ("wait", 26.9), ("answer", 0, "state")])
def test_each_request_gets_one_answer_in_time_and_nothing_else_is_said(script: list[tuple[Any, ...]]) -> None:
    model = Model()
    for operation in script:
        perform(model, operation)
        model.look()
        assert running(model) <= MAX_PARALLEL
    settle(model)


def running(model: Model) -> int:
    """Calls upstream that are limited in number: those that wait for no host."""
    entries = [model.drive.relay._requests.of_call(call) for call in model.drive.open]
    return sum(entry is not None and entry.left_s is None and entry.filter is None for entry in entries) - sum(
        entry is not None and entry.method == "subscriptions/listen" for entry in entries
    )


def perform(model: Model, operation: tuple[Any, ...]) -> None:
    drive = model.drive
    calls = sorted(drive.open)
    match operation:
        case ("request", id_value, method, modern, has_token):
            ask(model, id_value, method, modern, has_token)
        case ("retry", id_value, index, complete) if model.told:
            told = model.told[index % len(model.told)]
            answers = {key: {} for key in told.get("inputRequests", {})} if complete else {}
            more = {"inputResponses": answers, "requestState": told.get("requestState")}
            ask(model, id_value, "tools/call", True, False, **more)
        case ("cancel", id_value):
            one = model.open.get((type(id_value), id_value))
            if one is not None and one.method != "initialize":
                del model.open[type(id_value), id_value]
            drive.notify("notifications/cancelled", requestId=id_value)
        case ("initialized",):
            drive.notify("notifications/initialized")
        case ("malformed",):
            model.refusals += 1
            drive.receive(Malformed(None, -32600, "test"))
        case ("respond", index, accepts) if model.questions:
            asked = sorted(model.questions)[index % len(model.questions)]
            model.questions.remove(asked)
            model.answered_questions += 1
            drive.respond(asked, **({"result": {}} if accepts else {"error": {"code": 1, "message": "no"}}))
        case ("connected", name) if drive.connects:
            drive.connects.pop()
            drive.connected(SERVERS[name])
        case ("met", name):
            drive.take(drive.relay.met(SERVERS[name], drive.now_s))
        case ("answer", index, kind) if calls:
            call = calls[index % len(calls)]
            drive.answer(answer_of(kind, drive.open[call]), call)
        case ("late", index) if drive.aborted:
            call = drive.aborted[index % len(drive.aborted)]
            drive.answer(Result({"tag": -1}), call)
            drive.stream(notification("notifications/progress", progressToken="t", progress=1), call)
        case ("notice", index, kind) if calls:
            params = {"progressToken": "t", "uri": "a:b", "level": "error", "notifications": {}}
            drive.stream(notification(f"notifications/{kind}", **params), calls[index % len(calls)])
        case ("ask", index, method, server_id) if calls:
            drive.stream(server_request(server_id, method), calls[index % len(calls)])
        case ("withdraw", index, server_id) if calls:
            drive.stream(notification("notifications/cancelled", requestId=server_id), calls[index % len(calls)])
        case ("wait", seconds):
            drive.wait(seconds)


def ask(model: Model, id_value: int | str, method: str, modern: bool, has_token: bool, **more: Any) -> None:
    modern = modern and method != "initialize"
    meta: dict[str, Any] = {"progressToken": "t"} if has_token else {}
    if modern:
        meta |= envelope() | ({PREFIX + "logLevel": "info"} if has_token else {})
    params = {"_meta": meta, "tag": model.drive.now_s, "uri": "a:b", "level": "info", "capabilities": ASKABLE} | more
    params |= {"protocolVersion": "2025-06-18", "notifications": {"toolsListChanged": True}}
    before = model.open.get((type(id_value), id_value))
    if before is None:
        token = meta.get("progressToken")
        model.open[type(id_value), id_value] = Open(modern, method, token, model.drive.now_s, "requestState" in more)
        model.legacy = model.legacy or method == "initialize"
        model.wants_logs = model.wants_logs or method == "logging/setLevel" or (modern and has_token)
    else:
        model.refusals += 1
    # A refusal for the era or the envelope is the answer of an id that was free.
    model.drive.request(id_value, method, params)


def settle(model: Model) -> None:
    """In the end all is answered, and nothing is left upstream but what is listened to."""
    drive = model.drive
    if drive.connects:
        drive.connected(SERVERS["legacy"])
    drive.wait(2 * INPUT_LIMIT_S + LIMIT_S)
    model.look()
    assert all(one.method == "subscriptions/listen" for one in model.open.values()), model.open
    assert all(isinstance(send, Listen) for send in drive.open.values()), drive.open
    assert model.questions == set() or model.legacy
    drive.take(drive.relay.closed())
    assert drive.open == {} and drive.exited and drive.lines == []
