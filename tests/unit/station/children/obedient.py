"""An MCP server that misbehaves exactly as each call's arguments ask. Standard library only.

STATION_TEST_INITIALIZE: `refuse` answers initialize with an error, `late` holds its answer until the first call.
"""

import base64
import json
import os
import sys
from pathlib import Path
from typing import Any

Message = dict[str, Any]


def write(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


def answer(message: Message) -> None:
    """The tag as a text block, or whatever `result` or `error` the arguments hold."""
    arguments = message["params"]["arguments"]
    body: Message = {"jsonrpc": "2.0", "id": message["id"]}
    if "error" in arguments:
        body["error"] = arguments["error"]
    elif "result" in arguments:
        body["result"] = arguments["result"]
    else:
        body["result"] = {"content": [{"type": "text", "text": arguments["tag"]}]}
    line = json.dumps(body).encode()
    # `pad_to_bytes`: blanks inside the JSON, so that the whole line without its newline has this length.
    write(line[:1] + b" " * (arguments.get("pad_to_bytes", 0) - len(line)) + line[1:])


class Child:
    def __init__(self) -> None:
        self.initialize: Message | None = None
        self.initialize_owed = False
        self.received: list[Message] = []
        self.held: list[Message] = []

    def handle(self, message: Message) -> None:
        self.received.append(message)
        if message["method"] == "initialize":
            self.greet(message)
        elif message["method"] == "tools/list":
            write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"tools": [{"name": "any"}]}}).encode())
        elif message["method"] == "tools/call":
            self.call(message)

    def greet(self, message: Message) -> None:
        behaviour = os.environ.get("STATION_TEST_INITIALIZE")
        if behaviour == "refuse":
            write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -1, "message": "no"}}).encode())
        elif behaviour == "late":
            self.initialize = message
        else:
            self.welcome(message)

    def welcome(self, message: Message) -> None:
        self.initialize = None
        result = {"protocolVersion": "2024-11-05", "capabilities": {}, "serverInfo": {"name": "c", "version": "1"}}
        write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode())

    def call(self, message: Message) -> None:
        arguments = message["params"]["arguments"]
        if self.initialize:
            self.welcome(self.initialize)
        self.act(arguments)
        if arguments.get("report"):
            report = {"received": self.received, "argv": sys.argv[1:], "cwd": str(Path.cwd())}
            arguments["tag"] = json.dumps(report)
        if hold := arguments.get("hold_for"):
            self.held.append(message)
            if len(self.held) < hold:
                return
            self.release(reverse=arguments.get("reverse", False))
        else:
            self.answer_after_held(message)

    def act(self, arguments: Message) -> None:
        """What happens before the answer: stray lines, stderr floods, an end without a word."""
        for line in arguments.get("stray_base64", []):
            write(base64.b64decode(line))
        for _ in range(arguments.get("stderr_mib_unbroken", 0)):
            os.write(2, b"x" * 2**20)
        for _ in range(arguments.get("stderr_lines", 0)):
            os.write(2, b"a warning of some length\n")
        if arguments.get("exit"):
            os._exit(0)

    def answer_after_held(self, message: Message) -> None:
        """A held call is answered when the next one comes: before it, or after it with `overtake`."""
        if message["params"]["arguments"].get("overtake"):
            answer(message)
            self.release()
        else:
            self.release()
            answer(message)

    def release(self, *, reverse: bool = False) -> None:
        for message in reversed(self.held) if reverse else self.held:
            answer(message)
        self.held = []


if __name__ == "__main__":
    child = Child()
    for incoming in sys.stdin.buffer:
        child.handle(json.loads(incoming))
