"""The program of a child process: `python -P -m sam2_mcp_worker.execution.child MODULE`.

Claims fd 0 and 1 before anything else is imported, and hands over to task_server.py. (-P: a file named json.py in the
working directory must not be imported in place of the standard library's.)
"""

import os
import signal
import sys


def claim_wire() -> tuple[int, int]:
    """Move the protocol to private fds, so that a stray print or read of a library cannot touch it.

    Returns:
        The fds of requests and answers. fd 0 is then the null device and fd 1 the same as stderr.
    """
    requests, answers = os.dup(0), os.dup(1)  # dup gives non-inheritable fds
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return requests, answers


def leave_stopping_to_the_server() -> None:
    """Ignore the signals that a terminal or supervisor sends to a whole group: the server ends its children itself.

    A child that obeyed them would turn a call that the server still finishes into a crashed page.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)


if __name__ == "__main__":
    leave_stopping_to_the_server()
    wire = claim_wire()
    from sam2_mcp_worker.execution.task_server import main  # only now: an import may print

    sys.exit(main(sys.argv[1], wire))
