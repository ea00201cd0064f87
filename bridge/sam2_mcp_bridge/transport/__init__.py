"""HTTP: the one place that knows httpx, TLS and proxies."""
