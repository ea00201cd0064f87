"""The server's names for the decoder children. Nothing heavy is imported here."""

from __future__ import annotations

DECODER_MODULE = "sam2_mcp_worker.media.decoder_child"
"""The task module to start a ChildPool with."""

REDACT_MODULE = "sam2_mcp_worker.media.redact_child"
"""The task module of the pool that covers pixels and cleans PDFs."""

SCAN_MODULE = "sam2_mcp_worker.media.scan_child"
"""The task module of the one child that reads videos and sounds from beginning to end."""

# The largest picture accepted (250 MP) takes 1.0 GB in Pillow, which keeps 4 bytes a pixel; libraries, a strip of
# output and the interpreter's address space take up to 0.4 GB more. Two children then fit into a host of 4 GB.
DECODER_MEMORY_LIMIT_BYTES = 2 * 2**30

# 1916 x 120000 px, the longest landing page seen in the field, is 230 MP.
MAX_PIXELS = 250_000_000
