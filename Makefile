# `make demo` and `make test` set up everything they need in .venv and then run.
PYTHON ?= python3
BIN := .venv/bin
export JAX_COMPILATION_CACHE_DIR ?= $(CURDIR)/.cache/jax
export PIP_DISABLE_PIP_VERSION_CHECK := 1

ENGINE := engine/pyproject.toml engine/CMakeLists.txt $(shell find engine/src engine/python -type f -not -name '*.pyc')

.PHONY: demo test test-slow lint types unit docs linkcheck format setup clean

demo: setup
	$(BIN)/forethought demo

test: lint types unit

lint: setup
	$(BIN)/ruff check src tests benchmarks docs tools engine
	$(BIN)/ruff format --check src tests benchmarks docs tools engine

types: setup
	$(BIN)/pyright

unit: setup
	$(BIN)/python -m pytest -n 2 --dist loadfile

# What takes minutes each: altered rules of the engine, a cluster's own scheduler.
test-slow: setup
	$(BIN)/python -m pytest -m slow

# The site, in docs/build/html; a warning or a link inside it that leads nowhere is an error.
docs: setup
	$(BIN)/python -m sphinx --builder html --fail-on-warning --quiet --jobs auto docs docs/build/html
	$(BIN)/python docs/check_links.py docs/build/html

# The links that lead elsewhere; needs a network.
linkcheck: setup
	$(BIN)/python -m sphinx --builder linkcheck --quiet docs docs/build/linkcheck

format: setup
	$(BIN)/ruff check --fix src tests benchmarks docs tools engine
	$(BIN)/ruff format src tests benchmarks docs tools engine

setup: .venv/ready .venv/engine

.venv/ready: pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11, 3.12 or 3.13 is needed; name it with PYTHON=..."; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' \
		|| { echo "Python 3.11, 3.12 or 3.13 is needed, $(PYTHON) is another version; name one with PYTHON=..."; exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

# What the engine is built with comes first, so that it finds the headers of the jaxlib that it will meet.
.venv/engine: .venv/ready $(ENGINE)
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt cmake nanobind ninja scikit-build-core
	@if $(BIN)/python -m pip install --quiet --no-build-isolation --no-deps ./engine > .venv/engine.log 2>&1; then touch $@; \
		else rm -rf engine/build; echo "The fast engine was not built (no C++20 compiler? see .venv/engine.log): Craftax will be played with JAX."; fi

clean:
	rm -rf .venv .cache .pytest_cache .ruff_cache build dist engine/build
