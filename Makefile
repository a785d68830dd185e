# `make demo` and `make test` set up everything they need in .venv and then run.
PYTHON ?= python3
BIN := .venv/bin
export JAX_COMPILATION_CACHE_DIR ?= $(CURDIR)/.cache/jax
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test lint types unit format setup clean

demo: setup
	$(BIN)/forethought demo

test: lint types unit

lint: setup
	$(BIN)/ruff check src tests benchmarks tools
	$(BIN)/ruff format --check src tests benchmarks tools

types: setup
	$(BIN)/pyright

unit: setup
	$(BIN)/python -m pytest -n 2 --dist loadgroup

format: setup
	$(BIN)/ruff check --fix src tests benchmarks tools
	$(BIN)/ruff format src tests benchmarks tools

setup: .venv/ready

.venv/ready: pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11, 3.12 or 3.13 is needed; name it with PYTHON=..."; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' \
		|| { echo "Python 3.11, 3.12 or 3.13 is needed, $(PYTHON) is another version; name one with PYTHON=..."; exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

clean:
	rm -rf .venv .cache .pytest_cache .ruff_cache build dist
