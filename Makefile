# Everything is set up by the targets themselves, inside .venv, without root. Only uv keeps its cache of wheels in the home folder.
SHELL := /bin/sh
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TESSDATA := $(VENV)/share/tessdata
FONTS := $(VENV)/share/fonts/nanum
SOURCE ?=

.DEFAULT_GOAL := help
.PHONY: help setup demo sam test test-quick test-containers conformance check bench record-claude pyz images docs clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

setup: $(VENV)/worker.stamp $(TESSDATA)/kor.traineddata $(FONTS)/NanumGothic.ttf ## bridge, worker, language data and fonts in .venv

demo: setup ## read and judge a nine-page leaflet (or SOURCE=file) through station, bridge and worker
	@echo "==> demo"
	@$(BIN)/sam2-mcp-worker demo $(if $(SOURCE),--source "$(SOURCE)")

sam: $(VENV)/sam.stamp ## SAM 2 (torch) beside the worker, and its weights (156 MB from Meta)
	@$(BIN)/sam2-mcp-worker models fetch

test: $(VENV)/reference.stamp $(TESSDATA)/kor.traineddata $(FONTS)/NanumGothic.ttf ## all tests, with the coverage that the project promises
	@$(BIN)/python -m coverage erase
	@$(BIN)/python -m coverage run -m pytest tests $(PYTEST_ARGS)
	@$(BIN)/python -m coverage combine -q
	@$(BIN)/python tests/coverage_gate.py

test-quick: $(VENV)/reference.stamp $(TESSDATA)/kor.traineddata $(FONTS)/NanumGothic.ttf ## tests that take seconds
	@$(BIN)/python -m pytest tests -m "not slow" $(PYTEST_ARGS)

test-containers: $(VENV)/dev.stamp $(TESSDATA)/kor.traineddata ## the images under faults, in a Docker engine: needs root, installs and starts one where there is none
	@$(BIN)/python -m pytest tests/containers $(PYTEST_ARGS)

conformance: $(VENV)/dev.stamp $(TESSDATA)/kor.traineddata ## the official MCP suite and Inspector against bridge and worker, compared with docs/conformance.md
	@$(BIN)/python -m tests.conformance --check

check: $(VENV)/reference.stamp ## ruff, mypy --strict, import contracts
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: $(VENV)/dev.stamp $(TESSDATA)/kor.traineddata $(FONTS)/NanumGothic.ttf ## measure: OCR quality, bridge against its floor, Claude (scripted) against the ideal schedule, video, sound, verdicts against the truth
	@$(BIN)/python -m tests.bench.ocr
	@$(BIN)/python -m tests.bench.bridge
	@for part in time_truth decode_cost spot; do $(BIN)/python -m tests.bench.video.$$part --check || exit 1; done
	@for part in truth guards; do $(BIN)/python -m tests.bench.sound.$$part --check || exit 1; done
	@$(BIN)/python -m tests.bench.checks.phrase_truth --first 100 --check
	@for part in phrase_speed contrast_truth figure_truth; do $(BIN)/python -m tests.bench.checks.$$part --check || exit 1; done
	@for part in shapes schedule long_pdf repeat budget; do $(BIN)/python -m tests.bench.claude.$$part --check || exit 1; done

record-claude: $(VENV)/dev.stamp $(FONTS)/NanumGothic.ttf ## ask the real Claude once (ANTHROPIC_API_KEY, about 0.20 dollars) and keep its answers for replay
	@$(BIN)/python -m tests.record

pyz: ## the bridge as one file, dist/sam2-mcp-bridge.pyz, byte for byte the same wherever it is built
	@$(PYTHON) deploy/pyz/build.py

images: ## the images of worker and station
	docker build -f deploy/Dockerfile.worker $(if $(BASE_IMAGE),--build-arg BASE_IMAGE=$(BASE_IMAGE)) -t sam2-mcp-worker .
	docker build -f deploy/Dockerfile.station $(if $(BASE_IMAGE),--build-arg BASE_IMAGE=$(BASE_IMAGE)) -t sam2-mcp-station .

docs: $(VENV)/dev.stamp ## write the generated pages: docs/tools.md, docs/configuration.md
	@$(BIN)/python docs/generate.py

clean: ## remove what the targets made
	rm -rf $(VENV) .cache demo-out .coverage* .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/pip.stamp:
	@echo "==> Python environment in $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed: make PYTHON=python3.12"; exit 1; }
	@sh deploy/setup/venv.sh $(PYTHON) $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check uv || { $(offline); }
	@touch $@

offline := echo "packages could not be fetched: is this machine online? A mirror is named by PIP_INDEX_URL; then make again"; exit 1

# uv where it works; pip where an index is configured that uv does not know.
define install
	@echo "==> $(1)"
	@VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install -q -c constraints.txt $(2) $(3) \
	  || { echo "    uv could not, now pip"; $(BIN)/python -m pip install -q -U pip && $(BIN)/python -m pip install -q -c constraints.txt $(2) $(3); } \
  || { $(offline); }
endef

$(VENV)/worker.stamp: $(VENV)/pip.stamp pyproject.toml constraints.txt
	$(call install,bridge and worker,-e '.[worker$(comma)demo]')
	@touch $@

$(VENV)/sam.stamp: $(VENV)/worker.stamp deploy/setup/torch.sh
	@echo "==> torch, for SAM 2 (some minutes)"
	@sh deploy/setup/torch.sh $(BIN)/python || { $(offline); }
	$(call install,SAM 2,-e '.[worker$(comma)sam]')
	@touch $@

$(VENV)/dev.stamp: $(VENV)/worker.stamp
	$(call install,tools for development,-e '.[worker$(comma)speech$(comma)whisper-base]' --group dev)
	@touch $@

# The reference implementation, which SAM 2 is compared with; it would replace torch if it could.
$(VENV)/reference.stamp: $(VENV)/dev.stamp $(VENV)/sam.stamp
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps sam2==1.1.0 || { $(offline); }
	@touch $@

comma := ,

$(TESSDATA)/kor.traineddata: $(VENV)/pip.stamp
	@echo "==> Korean language data (Debian's tesseract-ocr-kor)"
	@sh deploy/setup/debian_files.sh tesseract-ocr-kor usr/share/tesseract-ocr/5/tessdata $(TESSDATA) \
	  || sh deploy/setup/debian_files.sh tesseract-ocr-kor usr/share/tesseract-ocr/4.00/tessdata $(TESSDATA)
	@touch $@

$(FONTS)/NanumGothic.ttf: $(VENV)/pip.stamp
	@echo "==> Korean fonts (Debian's fonts-nanum)"
	@sh deploy/setup/debian_files.sh fonts-nanum usr/share/fonts/truetype/nanum $(FONTS)
	@touch $@
