"""A bridge as one would write it first: each request in its own thread, no order, no deadline.

The rehearsal must find it out; a rehearsal that passes it proves nothing.
"""

import json
import os
import sys
from threading import Lock, Thread
from typing import Any

import httpx

URL = os.environ["SAM2_MCP_URL"]
HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
lock = Lock()


def forward(message: dict[str, Any]) -> None:
    text = httpx.post(URL, json=message, headers=HEADERS, timeout=60, trust_env=False).text
    answers = [line.removeprefix("data: ") for line in text.split("\n") if line.startswith("data: {")]
    with lock:
        for answer in answers:
            print(json.dumps(json.loads(answer)), flush=True)


if __name__ == "__main__":
    for incoming in sys.stdin:
        Thread(target=forward, args=(json.loads(incoming),), daemon=True).start()
