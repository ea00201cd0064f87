"""Measurements of this machine: ours beside what others would use, in one run."""
