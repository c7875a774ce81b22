# HyDRA. `make run` opens the console; `make help` lists the rest.
PYTHON ?= $(firstword $(shell command -v python3.11) $(shell command -v python3))
PORT ?= 8501
VENV := .venv
BIN := $(VENV)/bin
CONSOLE := $(BIN)/python -m hydra_core.ui.serve --server.port $(PORT)

.PHONY: help run test test-fast check bench sample-data catalogs train clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 14

run: $(VENV)/.run  ## open the console on port 8501 (PORT=... for another)
	@$(CONSOLE)

test: $(VENV)/.dev  ## all tests, the fast ones first
	$(BIN)/python -m pytest -q -m "not browser"
	$(BIN)/python -m pytest -q -m browser

test-fast: $(VENV)/.dev  ## all but the browser tests
	$(BIN)/python -m pytest -q -m "not browser"

check: $(VENV)/.dev  ## ruff, mypy --strict, import layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.dev  ## the figures of the README's table
	$(BIN)/python -m benchmarks.speed.bootstrap
	$(BIN)/python -m benchmarks.speed.frontier
	$(BIN)/python -m benchmarks.speed.predictor
	$(BIN)/python -m benchmarks.quality.robustness
	$(BIN)/python -m benchmarks.speed.router --soak 1000000
	$(BIN)/python -m benchmarks.console.slider
	$(BIN)/python -m benchmarks.speed.store
	$(BIN)/python -m benchmarks.speed.tuner
	$(BIN)/python -m benchmarks.quality.verdict_calibration --sets 2000 --queries 500
	$(BIN)/python -m benchmarks.console.depth_pages

sample-data: $(VENV)/.dev  ## rebuild sample_data/ from scratch
	$(BIN)/python -m sample_data.build all

catalogs: $(VENV)/.run  ## put the shipped bundle's bands into the shipped catalogs
	$(BIN)/python -m hydra_core rebind catalog/paper_five.yaml catalog/paper_eight.yaml catalog/matched_three.yaml

train: $(VENV)/.train  ## show how to train a predictor
	$(BIN)/python -m hydra_core.training --help

clean:  ## remove the virtual environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "HyDRA needs Python 3.11 or newer; no python3 was found."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "HyDRA needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Set PYTHON=/path/to/python3.11."; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "HyDRA needs Python's venv module; on Debian: apt-get install python3-venv."; exit 1; }
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.run: requirements.txt | $(VENV)/bin/python
	@echo "Installing what the console needs (once)..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check -r requirements.txt
	@touch $@

$(VENV)/.dev: requirements-dev.txt requirements.txt | $(VENV)/bin/python
	@echo "Installing what tests and checks need (once)..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check -r requirements-dev.txt
	@touch $@ $(VENV)/.run

$(VENV)/.train: requirements-train.txt requirements.txt | $(VENV)/bin/python
	@$(BIN)/python -m pip install -q --disable-pip-version-check -r requirements-train.txt
	@touch $@
