"""Every figure of a document with its exact value, its unit and what it is about."""

from sam2_mcp_worker.checks.figures.lines import figures_of
from sam2_mcp_worker.checks.figures.shape import Figure, Place
from sam2_mcp_worker.checks.figures.tables import figures_of_table

__all__ = ["Figure", "Place", "figures_of", "figures_of_table"]
