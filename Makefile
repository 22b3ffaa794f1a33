# Set-up and daily work. `make help` lists the targets.
PYTHON ?= python3
VENV   ?= .venv
LAB    ?= 1

BIN  := $(VENV)/bin
# node may be the environment's own (scripts/make_environment.sh brings it where the machine has none)
export PATH := $(CURDIR)/$(BIN):$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# modules are compiled when they are first imported: most never are
export PIP_NO_COMPILE := 1

SOURCES := pyproject.toml package.json $(shell find jupyterlab_jaxprof labextension etc -type f \
	-not -path '*/__pycache__/*' -not -path 'jupyterlab_jaxprof/labextension/*')

.PHONY: help demo test dev environments system-packages compat-environments lint lint-python lint-typescript compat \
	docs bench endurance clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

demo: $(BIN)/.demo  ## install, run the example notebook, open JupyterLab (LAB=0: without JupyterLab)
	$(BIN)/python scripts/run_notebook.py examples/training_step.ipynb
ifneq ($(LAB),0)
	$(BIN)/python scripts/open_lab.py examples/training_step.ipynb
endif

test:  ## all tests, linters and type checks, after installing what they need
	scripts/test_compat.sh --check
	$(MAKE) --no-print-directory -j3 environments
	$(MAKE) --no-print-directory -j2 lint
	scripts/run_tests.sh $(BIN)/python
	$(MAKE) --no-print-directory compat

# what waits for the network waits at the same time
environments: system-packages $(BIN)/.test compat-environments

lint: lint-python lint-typescript  ## ruff, pyright, eslint, prettier, tsc

lint-python: $(BIN)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

lint-typescript: $(BIN)/.test
	$(BIN)/jlpm run lint

docs: $(BIN)/.test  ## the documentation as HTML, in docs/_build/html
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html

compat: compat-environments  ## the kernel side's tests on the oldest and the newest supported JAX
	scripts/test_compat.sh

bench: $(BIN)/.test  ## all figures against peers and limits of the same run, in one table
	$(BIN)/python -m bench

endurance: $(BIN)/.test  ## the hardening's tests with their full numbers: hours
	scripts/endurance.sh $(BIN)/python

dev: $(BIN)/.test  ## editable install; rebuilds the labextension at every change until Ctrl-C
	$(BIN)/pip install -q --no-build-isolation -e '.[dev]'
	$(BIN)/jupyter labextension develop --overwrite .
	$(BIN)/jlpm run watch

system-packages:
	scripts/system_packages.sh

compat-environments:
	scripts/test_compat.sh --prepare

$(BIN)/python:
	scripts/make_environment.sh "$(PYTHON)" "$(VENV)"

$(BIN)/.demo: $(BIN)/python $(SOURCES)
	$(BIN)/pip install -q "$$(scripts/jax_requirement.sh)" '.[demo]'
	@touch $@

$(BIN)/.test: $(BIN)/python $(SOURCES) yarn.lock
	$(BIN)/pip install -q '.[dev]'
	$(BIN)/jlpm install --immutable
	@touch $@

clean:  ## remove everything that the targets above made
	rm -rf $(VENV) .venv-compat-* node_modules lib dist build *.tsbuildinfo jupyterlab_jaxprof/labextension
