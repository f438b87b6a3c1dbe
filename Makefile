# Every target sets itself up in .venv; a second call finds it ready. `make PYTHON=python3.13 test` picks the interpreter.
PYTHON ?= python3
VENV ?= .venv
# Test files that run beside each other; the servers they start are each file's own.
JOBS ?= 2
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PYTEST := $(BIN)/python -m pytest
SOURCES := hookspecs/src core/src $(wildcard plugins/*/src) tests
DISTRIBUTIONS := hookspecs/pyproject.toml core/pyproject.toml $(wildcard plugins/*/pyproject.toml)

.PHONY: demo demo-cli test check soak bench setup format clean

demo: $(READY)
	$(BIN)/hookloop demo

demo-cli: $(READY)
	$(BIN)/hookloop demo-cli

test: $(READY)
	$(PYTEST) -m "not soak" -n $(JOBS) --dist loadfile

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy $(SOURCES)
	$(PYTEST) tests/workshop/test_workshop_imports.py

soak: $(READY)
	$(PYTEST) -m soak

bench: $(READY)
	@set -e; for file in $(sort $(wildcard tests/bench/bench_*.py)); do $(BIN)/python $$file; done

setup: $(READY)

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(READY): requirements-dev.txt constraints.txt $(DISTRIBUTIONS)
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "hookloop needs Python 3.11 or newer: make PYTHON=python3.11 $(MAKECMDGOALS)")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -c constraints.txt hatchling editables
	$(BIN)/python -m pip install -q -c constraints.txt --no-build-isolation -r requirements-dev.txt
	@touch $@
