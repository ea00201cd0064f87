"""Engines behind the ports of `ports.py`; which one runs, the settings decide."""

import os

# Official builds of ONNX Runtime (measured: 1.32.0) look up mobile.events.data.microsoft.com 9 s after the import and
# report models and machine there. Switching it off by its own function is too late: the import has queued an event. So
# here, before any engine can be imported, in every process that uses one.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
