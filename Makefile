# Every target sets itself up on a fresh machine that has nothing but Python 3.11 or newer:
# the virtual environment in .venv is made with the standard library.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
USABLE := $(VENV)/.usable

.PHONY: help demo demo-ocr quick test test-all test-rest fuzz bench docs picture wheel lint format clean

help:
	@echo "make demo    profile, plan and tune a built-in network on this machine, in three minutes"
	@echo "make demo-ocr  the same with the PP-OCRv4 models (detection, direction, recognition)"
	@echo "make quick   what matters most of all parts, in a minute and a half"
	@echo "make test    all fast tests and a slow one of each kind, in six minutes"
	@echo "make test-all  all tests, in half an hour"
	@echo "make fuzz    open 70,000 damaged files and a table of hostile models; about an hour"
	@echo "make bench   backends side by side; the pipeline runtime; tuned plans against baselines"
	@echo "make docs    the documentation, out/docs/index.html"
	@echo "make wheel   build the wheel, and try it in an environment of its own"
	@echo "make picture the pictures in docs/images (needs chromium)"
	@echo "make lint    ruff and mypy --strict"
	@echo "make format  rewrite the sources in the house style"
	@echo "make clean   remove .venv and caches"

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "gapless needs Python 3.11 or newer; set PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	  --editable ".[all,dev]" --config-settings editable_mode=compat
	@touch $@ $(USABLE)

# What users install, without the tools of development.
$(USABLE): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "gapless needs Python 3.11 or newer; set PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)
	@echo "installing gapless with its solvers and engines into $(VENV): about a minute"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	  --editable ".[all]" --config-settings editable_mode=compat
	@touch $@

demo: $(USABLE)
	$(BIN)/gapless tune squeezenet --engine onnxruntime --top 4 --budget 60s --out out/demo --overwrite
	$(BIN)/gapless report out/demo --out out/demo/report.html
	@echo "Next: open out/demo/report.html in a browser; tune your own model with"
	@echo "  $(BIN)/gapless tune model.onnx"

OCR = $$($(BIN)/python -c 'import importlib.util as u, pathlib; print(pathlib.Path(u.find_spec("rapidocr_onnxruntime").origin).parent / "models")')

demo-ocr: $(READY)
	$(BIN)/gapless tune det=$(OCR)/ch_PP-OCRv4_det_infer.onnx cls=$(OCR)/ch_ppocr_mobile_v2.0_cls_infer.onnx \
	  rec=$(OCR)/ch_PP-OCRv4_rec_infer.onnx --shape det/x=1,3,480,640 --shape cls/x=1,3,48,192 \
	  --shape rec/x=1,3,48,320 --chain --top 6 --out out/demo-ocr --overwrite

# In two processes. Tests that measure this machine run one at a time (the marker `measures`, tests/conftest.py).
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal

# Without what is marked as slow, and with fewer examples of each property. The slowest are listed at the end:
# what takes a second or more is to be marked as slow.
quick: $(READY)
	$(PYTEST) -m "not slow" --hypothesis-profile=quick --durations=10

# All that is fast, and of what is slow one of each kind.
test: $(READY)
	$(PYTEST) -m "not slow or representative" --durations=10

test-all: test test-rest

# With fewer examples of each property, because each takes long here.
test-rest: $(READY)
	$(PYTEST) -m "slow and not representative" --hypothesis-profile=quick --durations=10

# The same seed makes the same files; what fails is kept in out/fuzz.
SEED ?= 1

fuzz: $(READY)
	$(BIN)/python -m benchmarks.fuzz --seed $(SEED)
	$(BIN)/python -m benchmarks.fuzz.hostile

bench: $(READY)
	$(BIN)/python -m benchmarks.planning
	$(BIN)/python -m benchmarks.pipeline
	$(BIN)/python -m benchmarks.devices

docs: $(READY)
	$(BIN)/python -m sphinx -W --keep-going --quiet -b html docs out/docs
	@echo "Open out/docs/index.html"

# The networks of the picture on the front page; they share the units of this machine.
PICTURE := squeezenetx3,mobilenetv2x2

picture: $(READY)
	$(BIN)/gapless tune squeezenet mobilenetv2 --workload "$(PICTURE)" --top 6 --budget 60s --out out/picture --overwrite
	$(BIN)/gapless report out/picture --out out/picture/report.html
	chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --force-device-scale-factor=1.5 \
	  --window-size=1200,900 --screenshot=docs/images/report.png file://$(CURDIR)/out/picture/report.html
	$(BIN)/python -m benchmarks.pico --figures 5,12,13 --pictures docs/images

WHEEL := out/wheel

# The wheel in an environment of its own, outside the checkout: what is missing in it shows here and nowhere else.
wheel: $(READY)
	rm -rf $(WHEEL) build
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir $(WHEEL) .
	rm -rf build
	$(PYTHON) -m venv $(WHEEL)/venv
	$(WHEEL)/venv/bin/python -m pip install --quiet --disable-pip-version-check $(WHEEL)/gapless-*.whl
	mkdir $(WHEEL)/empty
	cd $(WHEEL)/empty && ../venv/bin/gapless doctor
	cd $(WHEEL)/empty && ../venv/bin/gapless plan pixel7a/alexnet-sparse --top 3 --out plan.json
	cd $(WHEEL)/empty && ../venv/bin/gapless report plan.json --backends native,exhaustive --out report.html

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
