"""The commands of `sam2-mcp-worker`."""
