"""A stand-in for the XGEN MCP station: the same contract, with the same faults, for rehearsals and tests.

Written from a description of the public station's behaviour, not from its source. What differs, on purpose: no
Redis and no second pod, no CORS, Host names are checked, and the log holds the names of `env_vars`, never their values.
"""
