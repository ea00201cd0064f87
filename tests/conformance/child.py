"""A program that is run to its end, with a limit."""

import asyncio
import subprocess
from collections.abc import Sequence
from typing import NamedTuple

from tests.conformance.toolchain import ROOT, environment


class Ended(NamedTuple):
    """How a program ended, and what it said."""

    code: int
    stdout: str
    stderr: str


async def run_to_end(command: Sequence[str], limit_s: float, **variables: str) -> Ended:
    """Run a command from the root of the checkout, with these variables besides the usual ones.

    Raises:
        TimeoutError: it did not end in time, and was killed.
    """
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, env=environment() | variables, cwd=ROOT
    )
    try:
        stdout, stderr = await asyncio.wait_for(process.communicate(), limit_s)
    except TimeoutError:
        process.kill()
        await process.wait()
        raise TimeoutError(f"no end of {command[:6]} after {limit_s:.0f} s") from None
    assert process.returncode is not None
    return Ended(process.returncode, stdout.decode("utf-8"), stderr.decode("utf-8"))
