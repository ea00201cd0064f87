"""Runs cases through the tools or a workflow, and scores what came back."""
