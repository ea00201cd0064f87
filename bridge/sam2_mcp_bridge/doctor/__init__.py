"""`sam2-mcp --check`. Never loaded by a bridge that serves."""
