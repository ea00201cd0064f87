"""The host that the suite's client scenarios drive: starts the real bridge on the scenario's server and speaks to it.

The suite runs `python -m tests.conformance.driver [options] URL` and names the scenario in the environment. The
driver speaks raw JSON-RPC, in the era of the scenario's server unless told otherwise, and does what an ordinary host
would: it lists, calls, answers what it is asked. What the suite then checks is what the bridge made of it over HTTP.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable
from typing import Any

from tests.unit.bridge.mcp_host import Program

Message = dict[str, Any]

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
META = "io.modelcontextprotocol/"
CLIENT = {"name": "conformance-driver", "version": "1"}
CAPABILITIES = {"elicitation": {}, "sampling": {}, "roots": {"listChanged": False}}
UNSUPPORTED_VERSION = -32022


class RpcError(Exception):
    """The answer was an error."""

    def __init__(self, error: Message) -> None:
        super().__init__(json.dumps(error))
        self.code = error["code"]


class Host(Program):
    """An MCP host of one era with the bridge as its server."""

    def __init__(self, url: str, version: str, profile: str) -> None:
        super().__init__(url, "--profile", profile)
        self._version = version
        self.notifications: list[Message] = []

    @property
    def is_modern(self) -> bool:
        return self._version >= MODERN

    def start(self) -> None:
        """Handshake, or discovery with the one repetition that a refused version asks for."""
        if not self.is_modern:
            self.ask("initialize", protocolVersion=self._version, capabilities=CAPABILITIES, clientInfo=CLIENT)
            return self.send("notifications/initialized")
        try:
            self.ask("server/discover")
        except RpcError as error:
            if error.code != UNSUPPORTED_VERSION:
                raise
            self.ask("server/discover")

    def ask(self, method: str, **params: Any) -> Message:
        """Send a request, serve what comes in between, and return the result.

        Raises:
            RpcError: the answer is an error.
        """
        self._ids += 1
        if self.is_modern:
            params["_meta"] = params.get("_meta", {}) | {
                META + "protocolVersion": self._version,
                META + "clientInfo": CLIENT,
                META + "clientCapabilities": CAPABILITIES,
            }
        self.send(method, params, id=self._ids)
        while "method" in (message := self.answer()):
            if "id" in message:
                self._serve(message)
            else:
                self.notifications.append(message)
        assert message["id"] == self._ids, message
        if "error" in message:
            raise RpcError(message["error"])
        return message["result"]

    def call(self, name: str, arguments: Message | None = None, meta: Message | None = None, **more: Any) -> Message:
        """Call a tool, and again for as long as it wants input."""
        extra = more if meta is None else more | {"_meta": meta}
        result = self.ask("tools/call", name=name, arguments=arguments or {}, **extra)
        if result.get("resultType") != "input_required":
            return result
        responses = {key: respond(question) for key, question in result["inputRequests"].items()}
        state = {"requestState": result["requestState"]} if "requestState" in result else {}
        return self.call(name, arguments, meta, inputResponses=responses, **state)

    def tools(self) -> dict[str, Message]:
        return {tool["name"]: tool for tool in self.ask("tools/list")["tools"]}

    def _serve(self, request: Message) -> None:
        reply = {"jsonrpc": "2.0", "id": request["id"], "result": respond(request)}
        self.write(json.dumps(reply).encode() + b"\n")


def respond(request: Message) -> Message:
    """What a user and a model would say: forms are accepted with their defaults, and whatever else has to be there."""
    match request["method"]:
        case "elicitation/create":
            fields = request["params"]["requestedSchema"]["properties"]
            return {"action": "accept", "content": {name: answer_to(field) for name, field in fields.items()}}
        case "sampling/createMessage":
            content = {"type": "text", "text": "an answer"}
            return {"role": "assistant", "content": content, "model": "none", "stopReason": "endTurn"}
        case "roots/list":
            return {"roots": []}
    return {}


def answer_to(field: Message) -> Any:
    samples = {"string": "text", "integer": 1, "number": 1.5, "boolean": True}
    return field.get("default", samples.get(field["type"], []))


def sample_arguments(tool: Message) -> Message:
    properties = tool["inputSchema"].get("properties", {})
    return {name: answer_to(field) for name, field in properties.items()}


def list_and_call(host: Host, context: Message) -> None:
    """Call every tool that the host gets to see."""
    for name, tool in host.tools().items():
        host.call(name, sample_arguments(tool))


def handshake_only(host: Host, context: Message) -> None:
    host.tools()


def context_calls(host: Host, context: Message) -> None:
    """Call what the scenario says."""
    host.tools()
    for call in context["toolCalls"]:
        host.call(call["name"], call["arguments"])


def everything(host: Host, context: Message) -> None:
    """Use tools, resources and prompts, so that each kind of request is seen."""
    list_and_call(host, context)
    for resource in host.ask("resources/list")["resources"]:
        host.ask("resources/read", uri=resource["uri"])
    for prompt in host.ask("prompts/list")["prompts"]:
        host.ask("prompts/get", name=prompt["name"])


def echo_schema(host: Host, context: Message) -> None:
    """Give a tool's schema back as it arrived."""
    schema = host.tools()["json_schema_2020_12_tool"]["inputSchema"]
    host.call("json_schema_echo", {"schema": schema})


def state_between_calls(host: Host, context: Message) -> None:
    """Call the tools that ask, with an unrelated call between question and answer."""
    host.tools()
    question = host.ask("tools/call", name="test_mrtr_echo_state", arguments={})
    host.call("test_mrtr_unrelated")
    if question.get("resultType") == "input_required":
        responses = {key: respond(asked) for key, asked in question["inputRequests"].items()}
        state = question["requestState"]
        host.call("test_mrtr_echo_state", inputResponses=responses, requestState=state)
    host.call("test_mrtr_no_state")
    host.call("test_mrtr_no_result_type")


SCENARIOS: dict[str, Callable[[Host, Message], None]] = {
    "initialize": handshake_only,
    "tools_call": list_and_call,
    "request-metadata": list_and_call,
    "http-standard-headers": everything,
    "http-custom-headers": context_calls,
    "http-invalid-tool-headers": list_and_call,
    "json-schema-2020-12-preservation": echo_schema,
    "json-schema-ref-no-deref": handshake_only,
    "sep-2322-client-request-state": state_between_calls,
    "sse-retry": list_and_call,
    "elicitation-sep1034-client-defaults": list_and_call,
}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--host-era", choices=("legacy", "modern"))
    parser.add_argument("--profile", default="full")
    parser.add_argument("url")
    options = parser.parse_args()
    server_version = os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"]
    version = {"legacy": LEGACY, "modern": MODERN, None: server_version}[options.host_era]
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    host = Host(options.url, version, options.profile)
    try:
        host.start()
        SCENARIOS[os.environ["MCP_CONFORMANCE_SCENARIO"]](host, context)
        return 0
    finally:
        host.end()
        code = host.exit_code()
        sys.stderr.write(host.stderr.decode("utf-8", "replace"))
        assert code == 0, f"the bridge ended with {code}"


if __name__ == "__main__":
    sys.exit(main())
