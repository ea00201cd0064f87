"""stdio <-> streamable HTTP bridge for MCP hosts: the standard library and httpx, nothing else."""

__version__ = "0.1.0"
