"""This process: its pipes, threads and memory."""
