"""The worker: FastAPI + MCP server that reads images and PDFs for agents under a call deadline."""
