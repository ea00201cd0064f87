"""HTTP beside MCP: health, version, uploads, artifacts, and the guard in front of everything."""
