"""Weights: what there is, how it gets here, and whether it is what it says."""
