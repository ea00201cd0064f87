"""The version of the installed distribution."""

from importlib.metadata import version


def worker_version() -> str:
    """Version of sam2-mcp, the same for bridge and worker."""
    return version("sam2-mcp")
