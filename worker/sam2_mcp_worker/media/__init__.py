"""Decoding, tiling and drawing; outside data is only decoded in killable child processes."""
