# cloister: `make demo` shows it, `make check` looks at it quickly, `make test` proves it. Everything happens in .venv; nothing else on the machine is asked for.

PYTHON ?= python3
# Debian's own build of it where that is quicker; never in the place of one that is named, as in: make setup PYTHON=python3.12
QUICKEST := $(if $(filter file,$(origin PYTHON)),quickest)
BIN    := .venv/bin
JOBS   ?= 3
CORES  ?= 2
ARGS   ?=
# Of `test` and `prove`: CHANGED=1 runs the folders that a diff against main can reach, FRESH=1 draws fresh noise, SEED=7 other noise.
export CHANGED FRESH SEED JOBS
TIER = rm -rf $(CLOISTER_SECONDS) && CLOISTER_FRESH="$(FRESH)" CLOISTER_TEST_SEED="$(or $(SEED),1)" $(BIN)/python -m scripts.run_tests

# What linters read. A folder that does not exist yet is left out.
CODE := $(wildcard src tests benchmarks scripts docs examples conftest.py)

# What fails first, by name: collecting every test takes half a minute by itself. Rules that hold of the whole tree (words, layers,
# addresses, names that are stored), and the short tests of each package's centre.
QUICK ?= tests/test_package.py tests/test_trace.py $(addprefix tests/docs/test_,words.py pages.py complete.py hub_pages.py) \
  $(addprefix tests/stored/test_,rules.py hub_names.py policies.py models.py) $(addprefix tests/scripts/test_,house.py tiers.py bench.py) \
  tests/hub/test_routes.py tests/hub/web/test_voice.py $(addprefix tests/hub/policy/test_,table.py explain.py facts.py) \
  $(addprefix tests/privacy/test_,guarantee.py sensitivity.py filters.py rational.py) \
  $(addprefix tests/noise/test_,bernoulli.py laplace.py gaussian.py mechanism.py selection.py random.py) \
  tests/ledger/test_measure.py tests/tables/test_columns.py $(addprefix tests/session/test_,door.py distinct.py before.py allotments.py) \
  $(addprefix tests/query/test_,parse.py precedence.py) tests/traces/test_counter.py

# Tests wait a quarter of their time, so there is one process more than two cores have; a second thread for a product of matrices
# would only take turns with them. They start many programs, too, which read their bytecode rather than compile the package each
# time. Files run in their order, which ends with short pages: no process waits long for another's last file.
check test prove ci slow nightly again coverage: export OMP_NUM_THREADS := 1
check test prove ci slow nightly again coverage: export OPENBLAS_NUM_THREADS := 1
# By day a set has the same order in each run, as noise and examples are the same; at night it has another.
check test prove ci: export PYTHONHASHSEED ?= $(or $(SEED),1)
unexport PYTHONDONTWRITEBYTECODE
# What is tested is this tree, whatever a shell has.
unexport PYTHONPATH

# Where each run notes what its tests used of the processor.
export CLOISTER_SECONDS := .cache/seconds
# Compiled files live with the environment: a clone that is cleaned for the next commit does not compile every file once more.
export PYTHONPYCACHEPREFIX := $(CURDIR)/.venv/pycache

# What looks at the code without running it. mypy uses one processor, so it runs beside the rest: of `lint`, or of the tests.
TYPES := $(BIN)/mypy --no-error-summary
STYLE := $(BIN)/ruff check --quiet $(CODE) && $(BIN)/ruff format --check --quiet $(CODE) \
  && { said=$$($(BIN)/lint-imports --no-logo 2>&1) || { echo "$$said"; false; }; } && $(BIN)/python scripts/lint_randomness.py && $(BIN)/python scripts/lint_forks.py

.DEFAULT_GOAL := help
.PHONY: help demo check test prove ci budget house bench docs wheel lint format slow nightly again broken coverage clean setup

help:  ## this list
	@echo "cloister: share what the data says, not the data"
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1|\2/' | column -t -s '|' 2>/dev/null \
	  || grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST)
	@echo "  Words for a command go into ARGS, as in: make demo ARGS=--help"

demo:  ## a hub with sample data, and a private answer with its error and its cost, from nothing installed
	@$(PYTHON) scripts/environment.py base $(QUICKEST)
	@$(BIN)/cloister demo $(ARGS)

check: lint  ## a minute before every commit: lint, types, floors, and the tests that fail first
	@$(BIN)/python -m pytest -n $(CORES) --dist loadgroup --no-loadscope-reorder -m "not slow and not postgres and not spark" \
	  $(QUICK) $(ARGS)

test: setup  ## a quarter of an hour: what a change of logic can break, with lint, types and layers (CHANGED=1: what the change can reach)
	@$(STYLE)
	@$(TIER) test $(ARGS)

prove: setup  ## seven minutes: statistics, attacks, kills, browsers, stories, Spark, figures, the site, commands and the demo
	@$(TIER) prove $(ARGS)

ci: setup  ## what CI runs: test, then prove, in one run; what fails is tried once more, alone
	@$(STYLE)
	@export TRIES=2; $(TIER) all $(ARGS)

budget:  ## where the time of the last `make test` went, folder by folder, and what each may use
	@$(BIN)/python -m scripts.test_budget $(CLOISTER_SECONDS) $(ARGS)

slow: setup  ## the nightly tier: what takes minutes
	@$(BIN)/python -m pytest -m slow $(ARGS)

nightly: setup  ## the night, PART=1/10 a part of it: slow tests on fresh noise with full fuzzing and no engine missing
	@rm -rf $(CLOISTER_SECONDS)
	@CLOISTER_PART="$(PART)" CLOISTER_FRESH=1 CLOISTER_HYPOTHESIS=nightly CLOISTER_REQUIRE_ENGINES=1 $(BIN)/python -m pytest \
	  -p scripts.test_budget -n $(CORES) --dist loadgroup --no-loadscope-reorder -m slow --timeout 3600 $(ARGS)

again: setup  ## of the night, PART=1/24 a part of it: each test that draws noise runs for 20 seconds more, or 1,000 times
	@CLOISTER_PART="$(PART)" $(BIN)/python -m pytest -n $(CORES) --dist loadgroup --no-loadscope-reorder --disable-warnings \
	  -m "not slow and not spark" --timeout 3600 --again $(or $(SECONDS_EACH),20) tests $(ARGS)

coverage: setup  ## lines of each folder of src that no test of the day runs (ARGS="learn ledger --write before.json")
	@CORES=$(CORES) $(BIN)/python -m scripts.coverage_by_folder $(ARGS)

broken: setup  ## of the night: a line is broken in each of ten packages, and `make test` has to see it
	@$(BIN)/python -m scripts.broken_lines $(ARGS)

lint: setup  ## ruff, mypy --strict, the floors of the house, no randomness outside noise/
	@$(TYPES) & types=$$!; { $(STYLE); }; style=$$?; wait $$types && exit $$style

format: setup  ## let ruff mend what it can
	@$(BIN)/ruff check --fix --quiet $(CODE)
	@$(BIN)/ruff format --quiet $(CODE)

house: setup  ## how heavy the house is, room by room (ARGS=--write: what it is now is the most)
	@$(BIN)/python scripts/measure_house.py $(ARGS)

bench: setup  ## each promise of speed, measured; writes docs/benchmarks.md (ARGS=--quick for a short run)
	@$(BIN)/python scripts/bench.py $(ARGS)

wheel: setup  ## a wheel of cloister, into dist
	@$(BIN)/pip wheel --quiet --no-deps --wheel-dir dist .
	@ls dist/*.whl

docs: setup  ## the documentation, into docs/_build/html; a warning is an error
	@$(BIN)/python -m sphinx -q -W --keep-going -j auto docs docs/_build/html
	@echo "docs/_build/html/index.html"

clean:  ## away with everything that can be made again, .venv included
	@rm -rf .venv build dist docs/_build docs/_static/figures docs/reference/api .mypy_cache .ruff_cache .pytest_cache .hypothesis \
	  .import_linter_cache spark-warehouse metastore_db derby.log
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

setup:
	@$(PYTHON) scripts/environment.py all $(QUICKEST)
	@$(BIN)/cloister guest build > /dev/null
