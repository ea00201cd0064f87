"""What needs no judgement, as pure functions: closed label lists and rule packs. Imports nothing of ours but errors."""
