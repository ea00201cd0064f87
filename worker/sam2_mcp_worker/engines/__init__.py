"""Ports (Protocols) and one module per engine behind them."""
