"""The MCP server at the other end, of whatever revision: session, meaning of answers, event streams."""
