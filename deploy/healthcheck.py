"""Exits 0 when `http://127.0.0.1:PORT/PATH` answers 200: `python healthcheck.py 8765 /readyz`. Standard library only.

http.client rather than urllib, which would ask a proxy named in the container's environment.
"""

import http.client
import sys

TIMEOUT_S = 3.0


def is_healthy(port: int, path: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    raise SystemExit(0 if is_healthy(int(sys.argv[1]), sys.argv[2]) else 1)
