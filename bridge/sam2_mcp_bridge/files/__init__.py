"""Files of shared folders, sent to the worker. Only loaded with --share."""
