SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: setup
setup: ## install everything for development into .venv
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q uv
	VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install -q -e '.[worker,demo]' --group dev
