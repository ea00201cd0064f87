"""Starts the minimal station: `python deploy/station/main.py --port 8000`. Needs fastapi and uvicorn, nothing else."""

from minimal_station.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
