# Every target sets itself up on a fresh machine that has nothing but Python 3.11 or newer:
# the virtual environment in .venv is made with the standard library.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help demo test bench lint format clean

help:
	@echo "make demo    plan and compare on a shipped table"
	@echo "make test    all tests"
	@echo "make bench   backends side by side on the same instances"
	@echo "make lint    ruff and mypy --strict"
	@echo "make format  rewrite the sources in the house style"
	@echo "make clean   remove .venv and caches"

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "gapless needs Python 3.11 or newer; set PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	  --editable ".[all,dev]" --config-settings editable_mode=compat
	@touch $@

demo: $(READY)
	@mkdir -p out
	$(BIN)/gapless compare pixel7a/alexnet-sparse --top 5 --out out/comparison.json
	$(BIN)/gapless plan pixel7a/alexnet-sparse --top 5 --out out/plan.json
	$(BIN)/gapless check pixel7a/alexnet-sparse out/plan.json
	@echo "Written: out/comparison.json, out/plan.json"

test: $(READY)
	$(BIN)/python -m pytest

bench: $(READY)
	$(BIN)/python -m benchmarks.planning

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) out build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
