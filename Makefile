# HyDRA. `make run` opens the console; `make help` lists the rest.
PYTHON ?= $(firstword $(shell command -v python3.11) $(shell command -v python3))
PORT ?= 8501
VENV := .venv
BIN := $(VENV)/bin
# Training alone needs torch, in an environment of its own.
TRAIN := .venv-train
# So does LiteLLM, whose proxy pins what it needs, and Ray.
LITELLM := .venv-litellm
RAY := .venv-ray
PYTEST := $(BIN)/python -m pytest -q
# one more than cores: many tests wait for a server, a page or a process
PARALLEL := -n $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1) --dist worksteal
FAST := -m "not slow and not whole and not browser and not package"
SLOW := -m "(slow or whole) and not browser and not package"
BROWSER := -m "browser or package"
# what fails is run once more by itself, since a busy machine is slow; twice is a failure
AGAIN := --last-failed --last-failed-no-failures none
INSTALL := python -m pip install -q --disable-pip-version-check
LOCK := $(BIN)/uv pip compile -q --upgrade --python-platform x86_64-manylinux_2_28 \
	--custom-compile-command "make lock" pyproject.toml
HASHED := $(LOCK) --generate-hashes --python-version 3.11
DEV := --group dev --extra postgres --extra redis --extra label

# Tests start many processes: each would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help run test test-fast test-range test-train litellm-test ray-test check check-train lock audit bench docs sample-data catalogs train clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 14

run: $(VENV)/.run  ## open the console on port 8501 (PORT=... for another)
	@$(BIN)/python -m hydra_core console --server.port $(PORT)

test: test-fast  ## all tests, the fast ones first
	$(PYTEST) $(PARALLEL) $(SLOW) || $(PYTEST) $(SLOW) $(AGAIN)
	$(PYTEST) $(PARALLEL) $(BROWSER) || $(PYTEST) $(BROWSER) $(AGAIN)

test-fast: $(VENV)/.dev  ## the tests of computation: no pages, services, commands, nothing slow
	$(PYTEST) $(PARALLEL) $(FAST) || $(PYTEST) $(FAST) $(AGAIN)

test-range: $(VENV)/.dev  ## fast, whole and wheel's tests: lowest dependencies, later Pythons that are installed
	.ci/range

test-train: $(TRAIN)/.done  ## the tests of training, with torch
	$(TRAIN)/bin/python -m pytest -q tests/lab/training tests/predictor/test_onnx_predictor.py

litellm-test: $(VENV)/.dev $(LITELLM)/.done  ## the plugins inside a real LiteLLM proxy
	HYDRA_LITELLM=$(LITELLM) $(BIN)/python -m pytest -q tests/server/test_litellm.py

ray-test: $(RAY)/.done  ## sweeps and the service on a local Ray
	$(RAY)/bin/python -m pytest -q -W ignore::ResourceWarning tests/replay/test_partitions.py \
	    tests/server/test_ray.py

check: $(VENV)/.dev  ## ruff, mypy --strict, import layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check-train: $(TRAIN)/.done  ## mypy --strict on training, with torch's own types
	$(TRAIN)/bin/mypy -p hydra_core.lab.training

lock: $(VENV)/.dev  ## renew requirements*.lock and .ci/*.lock from pyproject.toml
	$(HASHED) -o requirements.lock
	$(HASHED) -c requirements.lock $(DEV) -o requirements-dev.lock
	$(LOCK) --no-annotate --python-version 3.11 --resolution lowest-direct $(DEV) -o .ci/lowest.lock
	$(LOCK) --no-annotate --python-version 3.12 $(DEV) -o .ci/newest.lock

audit: $(VENV)/.dev  ## known weaknesses of what is locked (asks PyPI's database)
	@$(BIN)/uv tool run -q pip-audit --strict --disable-pip --require-hashes -r requirements-dev.lock \
	    || { echo "Not clean: weaknesses are listed above; 'not found' or 'connection' means that the database could not be asked."; exit 1; }

docs: $(VENV)/.dev  ## the documentation as a site in site/ (no network)
	$(BIN)/python -m docs.write_reference
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build -q --strict
	@echo "Read it: $(BIN)/python -m http.server -d site -b 127.0.0.1 8000"

bench: $(VENV)/.dev  ## the figures of docs/figures.md
	$(BIN)/python -m benchmarks.speed.bootstrap
	$(BIN)/python -m benchmarks.speed.frontier
	$(BIN)/python -m benchmarks.speed.band
	$(BIN)/python -m benchmarks.speed.predictor
	$(BIN)/python -m benchmarks.quality.robustness
	$(BIN)/python -m benchmarks.speed.router --soak 1000000
	$(BIN)/python -m benchmarks.speed.serve
	$(BIN)/python -m benchmarks.speed.serve_memory
	$(BIN)/python -m benchmarks.speed.serve_soak
	$(BIN)/python -m benchmarks.speed.sweep
	$(BIN)/python -m benchmarks.speed.score_resume
	$(BIN)/python -m benchmarks.console.knob
	$(BIN)/python -m benchmarks.console.what_if
	$(BIN)/python -m benchmarks.console.weights
	$(BIN)/python -m benchmarks.speed.store
	$(BIN)/python -m benchmarks.speed.tuner
	$(BIN)/python -m benchmarks.speed.init
	$(BIN)/python -m benchmarks.verdict_calibration
	$(BIN)/python -m benchmarks.console.depth_pages
	$(BIN)/python -m benchmarks.console.pages

sample-data: $(VENV)/.dev  ## rebuild sample_data/ from scratch
	$(BIN)/python -m sample_data.build all

catalogs: $(VENV)/.run  ## put the shipped bundle's bands into the shipped catalogs
	$(BIN)/python -m hydra_core rebind catalog/paper_five.yaml catalog/paper_eight.yaml catalog/matched_three.yaml

train: $(TRAIN)/.done  ## show how to train a predictor
	$(TRAIN)/bin/python -m hydra_core.lab.training --help

clean:  ## remove the virtual environment and caches
	rm -rf $(VENV) .venv-lowest .venv-3.* $(TRAIN) $(LITELLM) $(RAY) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache

$(VENV)/bin/python $(TRAIN)/bin/python $(LITELLM)/bin/python $(RAY)/bin/python:
	@test -n "$(PYTHON)" || { echo "HyDRA needs Python 3.11 or newer; no python3 was found."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "HyDRA needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Set PYTHON=/path/to/python3.11."; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "HyDRA needs Python's venv module; on Debian: apt-get install python3-venv."; exit 1; }
	@$(PYTHON) -m venv $(@D:/bin=)

$(VENV)/.run: requirements.lock | $(VENV)/bin/python
	@echo "Installing what the console needs (once)..."
	@$(BIN)/$(INSTALL) --require-hashes -r requirements.lock
	@touch $@

$(VENV)/.dev: requirements-dev.lock | $(VENV)/bin/python
	@echo "Installing what tests and checks need (once)..."
	@$(BIN)/$(INSTALL) --require-hashes -r requirements-dev.lock
	@touch $@ $(VENV)/.run

$(TRAIN)/.done: requirements-dev.lock pyproject.toml | $(TRAIN)/bin/python
	@echo "Installing what training needs (once)..."
	@$(TRAIN)/bin/$(INSTALL) --require-hashes -r requirements-dev.lock
	@$(TRAIN)/bin/$(INSTALL) -e ".[train]"
	@touch $@

$(LITELLM)/.done: pyproject.toml | $(LITELLM)/bin/python
	@echo "Installing LiteLLM's proxy beside the router (once)..."
	@$(LITELLM)/bin/$(INSTALL) -e ".[litellm]"
	@touch $@

$(RAY)/.done: requirements-dev.lock pyproject.toml | $(RAY)/bin/python
	@echo "Installing Ray (once)..."
	@$(RAY)/bin/$(INSTALL) --require-hashes -r requirements-dev.lock
	@$(RAY)/bin/$(INSTALL) -e ".[ray]"
	@touch $@
