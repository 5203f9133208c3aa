# Every target sets up what it needs in .venv, with uv where there is one and with
# venv and pip elsewhere. Set-up runs again only when pyproject.toml has changed.
#
#   make test PYTHON=python3.12               another interpreter (with a new .venv)
#   make test PYTEST_ARGS="-n 2 -k objective" more arguments for pytest

PYTHON ?= python3
PYTEST_ARGS ?=
FUZZ_INPUTS ?= 100000

VENV := .venv
RUN := $(VENV)/bin/python
UV := $(shell command -v uv 2>/dev/null)

ifeq ($(UV),)
INSTALL = $(RUN) -m pip install --quiet --disable-pip-version-check
else
INSTALL = "$(UV)" pip install --quiet --python $(RUN)
endif

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test kernels oldest lint format bench fuzz faults coverage \
	mutants soak validity reproduce beyond docs clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' \
		$(firstword $(MAKEFILE_LIST))

demo: $(VENV)/.installed-report ## show the main job on an embedded data set
	PYTHONPATH=examples $(RUN) -m demonstration --out demo-output

test: $(VENV)/.installed-dev ## run the tests and the doctests
	$(RUN) -m pytest $(PYTEST_ARGS)

kernels: $(VENV)/.installed-dev ## compare printed numbers under two kernels of OpenBLAS
	for kernel in Haswell Nehalem; do \
		OPENBLAS_CORETYPE=$$kernel $(RUN) -m pytest -q $(PYTEST_ARGS) src \
			tests/test_documentation.py tests/app/cli/test_tutorial.py || exit 1; \
	done

lint: $(VENV)/.installed-dev ## check style, format and types
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

format: $(VENV)/.installed-dev ## put the code into the common format
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .

oldest: ## run the tests with the oldest packages that pyproject.toml admits
	$(PYTHON) -m venv --clear .venv-oldest
	$(PYTHON) .ci/oldest.py > .venv-oldest/oldest.txt
	.venv-oldest/bin/python -m pip install --quiet -e ".[dev]" \
		-c .venv-oldest/oldest.txt
	.venv-oldest/bin/python -m pytest $(PYTEST_ARGS)

bench: $(VENV)/.installed-bench ## measure time and memory against other packages
	$(RUN) benchmarks/run.py

validity: $(VENV)/.installed-dev ## run the long statistical suites
	$(RUN) -m pytest -m validity -n auto --dist loadscope $(PYTEST_ARGS)

fuzz: $(VENV)/.installed-dev ## read 100,000 mutated files, with progress
	MISSRATIO_FUZZ=$(FUZZ_INPUTS) $(RUN) -m pytest -q -s -p no:cacheprovider tests/fuzz

faults: $(VENV)/.installed-dev ## fail every write of every command; kill each 200 times
	$(RUN) tests/support/faults.py faults
	$(RUN) tests/support/faults.py kills

coverage: $(VENV)/.installed-dev ## which branches the tests take: 95% of all at least
	$(RUN) -m coverage erase
	$(RUN) -m coverage run -m pytest -n auto $(PYTEST_ARGS)
	$(RUN) -m coverage combine -q
	$(RUN) -m coverage report --fail-under 95

mutants: $(VENV)/.installed-dev ## which small faults in the code its own tests notice
	$(RUN) tests/support/mutants.py threshold modelfile resume certify watch \
		--sample 100

soak: $(VENV)/.installed-dev ## fit and predict for an hour, and watch the memory
	$(RUN) benchmarks/soak.py --minutes 60

reproduce: $(VENV)/.installed-report ## run every experiment of the paper, both variants
	$(VENV)/bin/missratio reproduce --variant published --out reproduction/published
	$(VENV)/bin/missratio reproduce --variant corrected --out reproduction/corrected

beyond: $(VENV)/.installed-report ## the same with curves past the paper, corrected
	$(VENV)/bin/missratio reproduce --variant corrected --beyond \
		--out reproduction/corrected

docs: $(VENV)/.installed-docs ## build the documentation in docs/_build/html
	rm -rf docs/generated
	$(RUN) -m sphinx -E -W --keep-going -q -b html docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

clean: ## remove everything that was made, except .venv
	rm -rf docs/_build docs/auto_examples docs/generated docs/sg_execution_times.rst
	rm -rf demo-output reproduction build dist .benchmarks
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

# One stamp for each extra, so that a target installs no more than it uses.
$(VENV)/.installed-%: pyproject.toml $(VENV)/.created
	@echo "Installing missratio[$*] in $(VENV)"
	@$(INSTALL) -e ".[$*]"
	@touch $@

# A Python without ensurepip can't put pip into a new environment; its own pip can.
$(VENV)/.created:
	@command -v "$(PYTHON)" >/dev/null || { \
		echo "There is no '$(PYTHON)' here. missratio needs Python 3.11 or newer;" \
			"name one, as in: make PYTHON=python3.12" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "missratio needs Python 3.11 or newer, and '$(PYTHON)' is" \
			"$$("$(PYTHON)" --version 2>&1). Name a newer one, as in:" \
			"make PYTHON=python3.12" >&2; exit 1; }
	@echo "Creating $(VENV)"
ifeq ($(UV),)
	@"$(PYTHON)" -m venv --clear $(VENV) >/dev/null 2>&1 || { \
		"$(PYTHON)" -m venv --clear --without-pip $(VENV) && \
		"$(PYTHON)" -m pip --python $(RUN) install --quiet pip; }
else
	@"$(UV)" venv --quiet --clear --seed --python "$(PYTHON)" $(VENV)
endif
	@touch $@

.PRECIOUS: $(VENV)/.installed-%
