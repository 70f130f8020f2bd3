# Two commands on a fresh machine: `make demo` and `make test`. Each sets up what it needs.
# While working: `make quick` after every change, `make check` before a commit, `make test` before it is shared.
PYTHON ?= python3
BIN := .venv/bin
WORKERS ?= $(shell nproc 2>/dev/null || echo 2)
# Compiled code is kept, here and not beside the sources, whatever the environment says: without it every program that a
# test starts compiles hushcube again, which takes three times as long as its work.
export PYTHONDONTWRITEBYTECODE :=
export PYTHONPYCACHEPREFIX := $(CURDIR)/.venv/pycache
# Every core has a worker: threads of its linear algebra would only wait for each other, at full speed.
ALONE := OPENBLAS_NUM_THREADS=1

.PHONY: demo quick test check audit bench engines pictures tables faces reproduce peers online adaptive options clean

demo: .venv/ready
	$(BIN)/hushcube demo

# Doctests, every second case of a unit, every fifth of a law, one of each contract: no services, nothing slow.
quick: .venv/dev
	$(ALONE) $(BIN)/python -m pytest -n $(WORKERS) -q --dist worksteal -m "not slow and not service" --few \
	  tests/unit tests/laws tests/contract tests/architecture src

# Everything. Tests marked `slow` or `service` start first; idle workers take over work from busy ones.
test: .venv/dev .venv/engines
	$(ALONE) $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

check: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Within an hour on two cores; `make audit PARTS=exact` runs one part again and keeps the figures of the others.
audit: .venv/dev .venv/engines
	PYTHONPATH=tests:. $(BIN)/python -m audit $(PARTS)

bench: .venv/dev
	$(BIN)/python -m benchmarks

engines: .venv/dev
	$(BIN)/python -m benchmarks.engines

pictures: .venv/dev
	$(BIN)/python docs/pictures/draw.py
	$(BIN)/python docs/pictures/explorer.py

options: .venv/dev
	$(BIN)/python docs/options.py

tables: .venv/dev
	$(BIN)/python -m benchmarks.tables

faces: .venv/dev
	$(BIN)/python -m benchmarks.face_values

# The papers' experiments, within an hour and a half on two cores; goes on where it was stopped. `make reproduce FIGURES=ding-1`.
reproduce: .venv/dev
	$(BIN)/python -m benchmarks.reproduce $(FIGURES)

# Other libraries on the same jobs, each in an environment of its own; what cannot be installed is skipped.
peers: .venv/dev
	$(BIN)/python -m benchmarks.peers --install

online: .venv/dev
	$(BIN)/python -m benchmarks.online

# AIM and MST beside ours; hours of processor time with the rivals, but it goes on where it was stopped.
adaptive: .venv/dev
	$(BIN)/python -m benchmarks.adaptive --install

.venv/ready: pyproject.toml hatch_build.py $(wildcard src/hushcube/private/engines/*.c)
	$(PYTHON) -m venv .venv || { [ "$$(id -u)" = 0 ] && apt-get update && apt-get install -y python3-venv && $(PYTHON) -m venv .venv; } \
	  || { echo "python3 cannot create a virtual environment: install the package python3-venv, then run make again" >&2; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

.venv/dev: .venv/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

.venv/engines: .venv/dev tests/install_engines.sh
	sh tests/install_engines.sh
	touch $@

clean:
	rm -rf .venv .venv-peers .mypy_cache .ruff_cache .pytest_cache .hypothesis
