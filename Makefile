# cloister: `make demo` shows it, `make test` proves it. Everything happens in .venv; nothing else on the machine is asked for.

PYTHON ?= python3
BIN    := .venv/bin
JOBS   ?= 3
ARGS   ?=

# What linters read. A folder that does not exist yet is left out.
CODE := $(wildcard src tests benchmarks scripts docs examples conftest.py)

# Tests wait a quarter of their time, so there is one process more than two cores have; a second thread for a product of matrices
# would only take turns with them. They start many programs, too, which read their bytecode rather than compile the package each
# time. Files run in their order, which ends with short pages: no process waits long for another's last file.
test slow nightly: export OMP_NUM_THREADS := 1
test slow nightly: export OPENBLAS_NUM_THREADS := 1
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test bench docs lint format slow nightly clean setup

help:  ## this list
	@echo "cloister: share what the data says, not the data"
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1|\2/' | column -t -s '|' 2>/dev/null \
	  || grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST)
	@echo "  Words for a command go into ARGS, as in: make demo ARGS=--help"

demo:  ## a hub with sample data, and a private answer with its error and its cost, from nothing installed
	@$(PYTHON) scripts/environment.py base
	@$(BIN)/cloister demo $(ARGS)

test: lint  ## everything that proves the code right: lint, types, floors, unit, engine, statistical and documentation tests
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup --no-loadscope-reorder -m "not slow" $(ARGS)

slow: setup  ## the nightly tier: what takes minutes
	@$(BIN)/python -m pytest -m slow $(ARGS)

nightly: setup  ## the whole night: slow tests, with full fuzzing and no engine missing; then the hub under load
	@CLOISTER_HYPOTHESIS=nightly CLOISTER_REQUIRE_ENGINES=1 $(BIN)/python -m pytest -m slow --timeout 3600 $(ARGS)
	@$(BIN)/python scripts/bench.py hub_load

lint: setup  ## ruff, mypy --strict, the floors of the house, no randomness outside noise/
	@$(BIN)/ruff check --quiet $(CODE)
	@$(BIN)/ruff format --check --quiet $(CODE)
	@$(BIN)/mypy --no-error-summary
	@said=$$($(BIN)/lint-imports --no-logo 2>&1) || { echo "$$said"; exit 1; }
	@$(BIN)/python scripts/lint_randomness.py

format: setup  ## let ruff mend what it can
	@$(BIN)/ruff check --fix --quiet $(CODE)
	@$(BIN)/ruff format --quiet $(CODE)

bench: setup  ## each promise of speed, measured; writes docs/benchmarks.md (ARGS=--quick for a short run)
	@$(BIN)/python scripts/bench.py $(ARGS)

docs: setup  ## the documentation, into docs/_build/html; a warning is an error
	@$(BIN)/python -m sphinx -q -W --keep-going -j auto docs docs/_build/html
	@echo "docs/_build/html/index.html"

clean:  ## away with everything that can be made again, .venv included
	@rm -rf .venv build dist docs/_build docs/_static/figures docs/reference/api .mypy_cache .ruff_cache .pytest_cache .hypothesis \
	  .import_linter_cache spark-warehouse metastore_db derby.log
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

setup:
	@$(PYTHON) scripts/environment.py all
