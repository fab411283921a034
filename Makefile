# Every target sets up what it needs; run it again after an interruption and it carries on.

PYTHON ?= python3
VENV ?= .venv
VERL_VENV ?= .venv-verl
# The pin comes first and alone: a looser request resolves to builds several times the size.
TORCH ?= torch==2.13.0
PYTEST_ARGS ?=

HERE := $(CURDIR)
PY := $(VENV)/bin/python
VERL_PY := $(VERL_VENV)/bin/python
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check
SETTINGS := pyproject.toml constraints.txt

# An environment is trusted if it was made for this very folder and its Python starts; otherwise
# its stamps go, and it is completed or made again.
define trust
$(shell if [ -d $(1) ] && ! { [ "$$(cat $(1)/.made-for 2>/dev/null)" = "$(HERE)" ] \
	&& $(1)/bin/python -c 'import pip' >/dev/null 2>&1; }; then rm -f $(1)/.made-for $(1)/.have-*; fi)
endef
$(call trust,$(VENV))
$(call trust,$(VERL_VENV))

# $(1): the folder. One that works and was made here is kept, anything else is made again.
define make_environment
@$(PYTHON) -c 'import sys; v = sys.version_info; ok = v >= (3, 11); \
	ok or print("M2PO Lab needs Python 3.11 or newer; $(PYTHON) is %d.%d. Name another one: make PYTHON=python3.12 ..." % v[:2], file=sys.stderr); \
	sys.exit(not ok)'
@if $(1)/bin/python -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 \
	&& grep -qF '$(abspath $(1))' $(1)/pyvenv.cfg; then :; else \
	if [ -n "$$(ls -A $(1) 2>/dev/null)" ] && ! [ -e $(1)/pyvenv.cfg ]; then \
		echo "$(1) holds files and is no environment; name another folder: make VENV=..." >&2; exit 2; fi; \
	echo "making $(1)"; $(PYTHON) -m venv --clear $(1); fi
@printf '%s' '$(HERE)' > $@
endef

.NOTPARALLEL:

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(firstword $(MAKEFILE_LIST)) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 26

.PHONY: demo
demo: $(VENV)/.have-base ## install the command, train a toy on stale rollouts, analyze its log and a real one
	@$(VENV)/bin/m2po-lab demo

.PHONY: setup
setup: $(VENV)/.have-dev ## the development environment

.PHONY: test
test: $(VENV)/.have-dev ## every test that needs neither verl nor vLLM
	@$(PY) -m pytest --numprocesses auto --ignore=tests/full_scale --ignore=tests/notebooks $(PYTEST_ARGS)

.PHONY: test-full-scale
test-full-scale: $(VERL_VENV)/.have-verl ## tests of the verl plugin, in an environment of their own
	@if find tests/full_scale -name 'test_*.py' 2>/dev/null | grep -q .; then \
		$(VERL_PY) -m pytest -p no:asyncio tests/full_scale $(PYTEST_ARGS); \
	else \
		$(VERL_PY) -c 'from importlib.metadata import version as v; print("verl", v("verl"), "is installed; tests/full_scale holds no test file, so nothing was tested")'; \
	fi

.PHONY: lint format types contracts style
lint: style types contracts ## everything that needs no run

style: $(VENV)/.have-dev ## ruff: rules and format
	@$(PY) -m ruff check
	@$(PY) -m ruff format --check

types: $(VENV)/.have-dev ## mypy --strict
	@$(PY) -m mypy --strict

contracts: $(VENV)/.have-dev ## which module may import which
	@$(VENV)/bin/lint-imports

format: $(VENV)/.have-dev ## put the code into ruff's format
	@$(PY) -m ruff check --fix
	@$(PY) -m ruff format

.PHONY: docs
docs: $(VENV)/.have-docs ## the documentation, into docs/_build/html; warnings are errors
	@$(PY) -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

.PHONY: notebooks
notebooks: $(VENV)/.have-notebooks ## run every tutorial; the committed ones must be up to date
	@$(PY) notebooks/run.py $(NOTEBOOKS)
	@$(PY) -m pytest tests/notebooks $(PYTEST_ARGS)

.PHONY: bench
bench: $(VENV)/.have-dev ## the benchmarks, one after the other
	@set -e; for script in bench/*.py; do \
		[ -e "$$script" ] || { echo "bench/ holds no script"; continue; }; \
		case "$$script" in */_*) continue;; esac; \
		echo "== $$script"; $(PY) "$$script"; done

.PHONY: clean
clean: ## remove environments, caches and builds
	rm -rf $(VENV) $(VERL_VENV) build dist docs/_build docs/jupyter_execute *.egg-info
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find m2po_lab toy_envs full_scale tests bench docs -name __pycache__ -type d -prune -exec rm -rf {} +

# Stamps: written last, so that half an installation is completed by the next run.
$(VENV)/.made-for:
	$(call make_environment,$(VENV))

$(VERL_VENV)/.made-for:
	$(call make_environment,$(VERL_VENV))

$(VENV)/.have-base: $(VENV)/.made-for $(SETTINGS)
	@echo "installing m2po-lab into $(VENV)"
	@$(PY) $(PIP_INSTALL) -c constraints.txt -e .
	@touch $@

$(VENV)/.have-dev: $(VENV)/.made-for $(SETTINGS)
	@echo "installing the development environment into $(VENV)"
	@$(PY) $(PIP_INSTALL) -c constraints.txt "$(TORCH)"
	@$(PY) $(PIP_INSTALL) -c constraints.txt -e ".[dev]"
	@touch $@ $(VENV)/.have-base

$(VENV)/.have-docs: $(VENV)/.have-dev
	@echo "installing the documentation tools into $(VENV)"
	@$(PY) $(PIP_INSTALL) -c constraints.txt -e ".[docs]"
	@touch $@

$(VENV)/.have-notebooks: $(VENV)/.have-dev
	@echo "installing the notebook tools into $(VENV)"
	@$(PY) $(PIP_INSTALL) -c constraints.txt -e ".[notebooks]"
	@touch $@

$(VERL_VENV)/.have-verl: $(VERL_VENV)/.made-for pyproject.toml constraints-verl.txt
	@echo "installing verl into $(VERL_VENV): about 2 GB"
	@$(VERL_PY) $(PIP_INSTALL) -c constraints-verl.txt "$(TORCH)"
	@$(VERL_PY) $(PIP_INSTALL) -c constraints-verl.txt -e ".[full-scale]" pytest hypothesis
	@touch $@
