"""An MCP server on stdio whose one tool judges; the first argument says how it goes wrong. Standard library only."""

import json
import sys
from typing import Any

Message = dict[str, Any]


def send(message: Message) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def facts(fault: str, arguments: Message) -> Message:
    source = arguments["source"]
    result: Message = {
        "file": "another.pdf" if fault == "other_file" else source,
        "label": "conditional",
        "coverage": {"total": 2, "done": 2, "failed": [], "unreached": []},
        "phrases": [
            {"phrase": "예금자보호", "state": "missing", "verdict": "not_met"},
            {"phrase": "청약 철회", "state": "present"},
        ],
    }
    if fault == "endless":
        result["cursor"] = "more"
    if fault == "two_pages" and "cursor" not in arguments:
        result |= {
            "cursor": "c1",
            "label": "none",
            "phrases": [{"phrase": "민원", "state": "review", "verdict": "review"}],
        }
    if fault == "nameless":
        del result["file"]
    return result


def text_of(fault: str, arguments: Message) -> str:
    if fault == "no_facts":
        return "안녕하세요"
    if fault == "list_of_facts":
        return "[1]"
    return "[page_out_of_range] nine" if fault == "tool_error" else json.dumps(facts(fault, arguments))


def answer(fault: str, message: Message) -> None:
    method, reply = message["method"], {"jsonrpc": "2.0", "id": message.get("id")}
    if method == "initialize":
        send(reply | {"result": {"protocolVersion": "2024-11-05", "capabilities": {}, "serverInfo": {"name": "e"}}})
    elif method == "tools/list":
        names = [] if fault == "no_tools" else ["inspect_pdf"] if fault == "other_tools" else ["check_phrases"]
        send(reply | {"result": {"tools": [{"name": name} for name in names]}})
    elif method == "tools/call":
        if fault == "stray_line":
            send({"jsonrpc": "2.0", "method": "notifications/message", "params": {}})
        if fault == "exits":
            sys.exit(1)
        if fault == "picture_first":
            send(reply | {"result": {"content": [{"type": "image", "data": ""}]}})
        elif fault == "refuses":
            send(reply | {"error": {"code": -32603, "message": "out of order"}})
        elif fault != "silent":
            content = [{"type": "text", "text": text_of(fault, message["params"]["arguments"])}]
            send(reply | {"result": {"content": content, "isError": fault == "tool_error"}})


if __name__ == "__main__":
    for line in sys.stdin:
        answer(sys.argv[1], json.loads(line))
