# Every target sets up what it needs: a virtual environment here, the test harness of the
# dashboards, and system programs through apt-get where they are missing and we are root.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
HARNESS := tests/grafana

.PHONY: demo test check generate programs python tools
.DELETE_ON_ERROR:

demo: PACKAGES := prometheus prometheus-alertmanager
demo: $(VENV)/ready programs
	$(BIN)/seedance-obs demo

test: PACKAGES := prometheus prometheus-alertmanager victoria-metrics chromium
test: $(VENV)/ready tools $(HARNESS)/node_modules/ready programs
	$(BIN)/pytest --numprocesses=2 --dist=loadfile --no-loadscope-reorder

check: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

generate: $(VENV)/ready
	$(BIN)/python -m seedance_obs.generate

$(VENV)/ready: pyproject.toml | python
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --editable '.[all]' --group dev
	touch $@

$(HARNESS)/node_modules/ready: $(HARNESS)/package.json | tools
	npm install --prefix $(HARNESS) --no-package-lock --no-audit --no-fund --loglevel=error
	touch $@

tools:
	@for tool in cc npm git; do command -v $$tool >/dev/null || \
	  { echo "the tests need a C compiler, Node 20 with npm, and git: $$tool is missing" >&2; exit 1; }; done

# Debian splits venv's pip from Python; elsewhere it comes along.
python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed")'
	@if ! $(PYTHON) -c 'import ensurepip' 2>/dev/null; then $(call install,python3-venv); fi

programs:
	@missing=; \
	for package in $(PACKAGES); do \
	  command -v $$package >/dev/null || command -v $${package#prometheus-} >/dev/null || missing="$$missing$${missing:+ }$$package"; \
	done; \
	if [ -n "$$missing" ]; then $(call install,$$missing); fi

# Installs Debian packages, or asks for them in one sentence.
install = if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	apt-get update -qq \
	&& DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(1); \
	else echo "please install: $(1), for example with: sudo apt-get install $(1)" >&2; exit 1; fi
