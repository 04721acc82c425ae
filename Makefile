# Every target sets up what it needs: a virtual environment here, and the system programs
# (Prometheus, Alertmanager, Chromium) through apt-get where they are missing and we are root.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NODE_HARNESS := tests/grafana

.PHONY: demo test check generate programs
.DELETE_ON_ERROR:

demo: $(VENV)/ready programs
	$(BIN)/seedance-obs demo

test: $(VENV)/ready $(NODE_HARNESS)/node_modules/ready programs
	$(BIN)/pytest

check: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

generate: $(VENV)/ready
	$(BIN)/python -m seedance_obs.generate

$(VENV)/ready: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --editable '.[all]' --group dev
	touch $@

$(NODE_HARNESS)/node_modules/ready: $(NODE_HARNESS)/package.json
	npm install --prefix $(NODE_HARNESS) --no-package-lock --no-audit --no-fund --loglevel=error
	touch $@

PROGRAMS := prometheus promtool prometheus-alertmanager amtool chromium
PACKAGES := prometheus prometheus-alertmanager chromium

programs:
	@missing=; for program in $(PROGRAMS); do command -v $$program >/dev/null || missing="$$missing $$program"; done; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(PACKAGES); \
	else \
	  echo "missing:$$missing; install the packages $(PACKAGES), for example: sudo apt-get install $(PACKAGES)" >&2; exit 1; \
	fi
