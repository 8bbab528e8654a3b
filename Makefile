# Everything runs in .venv, made from the locks in requirements/; nothing is left outside this folder.
PYTHON ?= python3

CACHE := $(CURDIR)/.cache
# RUSTUP_HOME is here because pip asks any rustc it finds for its version.
export XDG_CACHE_HOME := $(CACHE)
export XDG_CONFIG_HOME := $(CACHE)/config
export TMPDIR := $(CACHE)/tmp
export PIP_CACHE_DIR := $(CACHE)/pip
export RUSTUP_HOME := $(CACHE)/rustup
export NUMBA_CACHE_DIR := $(CACHE)/numba
export MPLCONFIGDIR := $(CACHE)/matplotlib
export RUFF_CACHE_DIR := $(CACHE)/ruff
export MYPY_CACHE_DIR := $(CACHE)/mypy
export HYPOTHESIS_STORAGE_DIRECTORY := $(CACHE)/hypothesis
# Packages are installed without byte code, so the first import must be able to keep it.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo docs docs-all test test-thorough wheel test-browser test-gpu test-all test-versions line-coverage \
	coverage reproduced format lock clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-14s %s\n", $$1, $$2}' Makefile

demo: | .cache/tmp ## improve the policy behind the example log, into the folder demo
	@"$(PYTHON)" tools/environment.py demo
	@rm -rf demo
	.venv/bin/surestep improve examples/pumps.toml -o demo

docs: CHANGED := --changed
docs: docs-all ## run the pages of the gallery that changed, and build the site of the documentation, into the folder site

docs-all: | .cache/tmp ## the same, with all pages of the gallery
	@"$(PYTHON)" tools/environment.py test
	@rm -rf site
	.venv/bin/python tools/gallery.py --check $(CHANGED)
	.venv/bin/python -m sphinx -E -q -W --keep-going -c tools/docsite -d .cache/doctrees docs site
	@echo "site/index.html"

KIND = not slow and not thorough
# Without its own words for a failed assert, pytest reads the tests in half the time; what fails
# is run once more, with them.
TESTS = .venv/bin/pytest -n 2 --dist worksteal --assert plain --durations 15 --durations-min 2 -m "$(KIND)" || \
	{ .venv/bin/pytest --last-failed --last-failed-no-failures none -m "$(KIND)"; exit 1; }
READY = .venv/bin/pytest --collect-only -q --assert plain -m "$(KIND)"; \
	.venv/bin/python benchmarks/compilation.py --keep --only runs.simulate runs.population_counts \
	components.strong_components robust_batch.settle_intervals posterior.draw_models nodes.node_rounds

# Bits are promised on the processor: a GPU of this machine has tests of its own.
test test-thorough: export SURESTEP_DEVICE := cpu
test: | .cache/tmp ## format, lint, types, layers, budgets, quick tests and doctests, wheel
	@"$(PYTHON)" tools/environment.py test
	@# Each takes one core, so they run side by side. Who is done sooner makes ready what both
	@# processes of the tests would begin with: byte code, and kernels that all of them need.
	"$(PYTHON)" tools/check_wheel.py && { { $(READY); } > .cache/ready.txt 2>&1 || true; } & wheel=$$!; \
		.venv/bin/ruff format --check && .venv/bin/ruff check && .venv/bin/mypy && \
		.venv/bin/lint-imports --no-logo --cache-dir .cache/import-linter && \
		.venv/bin/python tools/statements.py src/surestep --check > .cache/statements.txt; \
		checked=$$?; wait $$wheel && exit $$checked
	$(TESTS)

test-thorough: KIND = thorough and not slow
test-thorough: | .cache/tmp ## the tests that take about a second or more each
	@"$(PYTHON)" tools/environment.py test
	$(TESTS)

wheel: | .cache/tmp ## build the wheel of a release, with machine code for this Python, and try it
	@"$(PYTHON)" tools/environment.py test
	.venv/bin/python tools/machine_code.py .cache/machine_code
	"$(PYTHON)" tools/check_wheel.py --machine-code .cache/machine_code

test-browser: | .cache/tmp ## open the pages in the system's chromium
	@"$(PYTHON)" tools/environment.py test
	.venv/bin/pytest -n 2 -rs -m slow tests/report/test_browser.py \
		tests/site/test_browser.py

test-gpu: ## test and measure on a GPU, with the interpreter and the packages at hand
	@"$(PYTHON)" tools/test_gpu.py

test-all: test test-thorough ## both, the slow tests, other machines, and a search for new counterexamples
	@"$(PYTHON)" tools/environment.py cluster
	.venv/bin/pytest -n 2 --dist worksteal -m slow
	"$(PYTHON)" tools/check_wheel.py --extras
	.venv/bin/python tools/machines.py
	.venv/bin/pytest -n 2 --dist worksteal -m "not slow" --hypothesis-profile explore tests

test-versions: .cache/lock/bin/uv ## try every verb with the oldest and the newest packages, and each Python that is here
	@"$(PYTHON)" tools/environment.py demo
	.venv/bin/python tools/versions.py

line-coverage: | .cache/tmp ## show which lines of src the tests run, into .cache/line-coverage
	@"$(PYTHON)" tools/environment.py test
	COVERAGE_FILE=.cache/coverage.data .venv/bin/pytest -n 2 --dist worksteal -q -m "not slow" \
		--cov src/surestep --cov-report html:.cache/line-coverage --cov-report json:.cache/coverage.json
	.venv/bin/python tools/line_coverage.py .cache/coverage.json

# The seed of all data: another one makes a fresh run.
COVERAGE_SEED := 2028
coverage: | .cache/tmp ## hold all certificates against the truth, and write docs/coverage.md (hours)
	@"$(PYTHON)" tools/environment.py test
	.venv/bin/surestep run coverage --seed $(COVERAGE_SEED)
	.venv/bin/python tools/verdicts.py --seed $(COVERAGE_SEED)
	.venv/bin/python tools/coverage_page.py
	.venv/bin/python tools/pilots.py --write
	.venv/bin/python tools/structures.py --write

reproduced: | .cache/tmp ## run the paper's evaluation, and write docs/reproduced.md (minutes)
	@"$(PYTHON)" tools/environment.py test
	for name in gridworld wet-chicken resource-gathering; do \
		.venv/bin/surestep run paper/$$name --workers 1 || exit 1; done
	.venv/bin/python tools/reproduced_page.py

format: | .cache/tmp ## put the code into the house format
	@"$(PYTHON)" tools/environment.py test
	.venv/bin/ruff format
	.venv/bin/ruff check --fix

# Pins that still fit are kept; `make lock UPGRADE=--upgrade` takes the newest of everything.
RESOLVE = .cache/lock/bin/uv pip compile --quiet --no-config --system-certs --universal \
	--fork-strategy fewest --python-version 3.11 --generate-hashes --no-annotate \
	--custom-compile-command "make lock" $(UPGRADE)
COMPILE = $(RESOLVE) --overrides requirements/overrides.txt --extra plots pyproject.toml

lock: .cache/lock/bin/uv ## resolve the dependencies anew
	$(COMPILE) requirements/demo.in --output-file requirements/demo.txt
	$(COMPILE) --extra rl --extra storm --extra icu --extra states --extra warehouse requirements/test.in --constraint requirements/demo.txt \
		--output-file requirements/test.txt
	$(COMPILE) --extra rl --extra storm --extra icu --extra states --extra warehouse --extra cluster requirements/cluster.in \
		--constraint requirements/test.txt --output-file requirements/cluster.txt
	$(RESOLVE) requirements/uv.in --output-file requirements/uv.txt

clean: ## remove everything that make made
	rm -rf .venv .cache demo site
	find . -path ./.git -prune -o -name __pycache__ -prune -exec rm -rf {} +

.cache/tmp:
	@mkdir -p $@

.cache/lock/bin/uv: requirements/uv.txt | .cache/tmp
	cd tools && "$(PYTHON)" -c "from environment import hold_uv; hold_uv()"
