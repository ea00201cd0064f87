"""What runs in what order for one tool call."""
