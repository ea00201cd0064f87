"""The task module of the scan child: reads long videos and sounds from beginning to end, with open files kept between
tasks, so that going on costs nothing. One child, so that a task always finds the file that the one before it opened.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def setup(config: dict[str, Any]) -> None:
    """Nothing to load or configure: limits come with each task."""


TASKS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {}
