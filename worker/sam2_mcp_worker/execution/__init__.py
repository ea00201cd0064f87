"""Killable child processes and the pool that runs tasks in them."""
