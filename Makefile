# Everything on a fresh Debian machine: `make demo` runs the main job, `make test` the tests.
# Both make a virtual environment of their own and install what they need.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.installed
PEERS := $(VENV)/.peers-installed

.PHONY: demo sql-story test test-all soak lint bench clean browser

demo: $(READY)
	mkdir -p out
	$(BIN)/python -m apps.broadcast --nprocs 16 --profile out/broadcast.bsp
	$(BIN)/bsp report out/broadcast.bsp
	$(BIN)/bsp view --html out/broadcast.html out/broadcast.bsp
	@echo
	@echo "The shaded call graph: open out/broadcast.html in a browser,"
	@echo "or serve it with: $(BIN)/bsp view out/broadcast.bsp"

# The SQL application of Jarvis et al. (2002), stage by stage: tables, and traces in out/.
sql-story: $(READY)
	$(BIN)/python -m apps.sql story --out out

test: $(READY) browser lint
	$(BIN)/pytest

# Real processes in all numbers: twice as long as the tests above.
test-all: $(READY) browser lint
	$(BIN)/pytest --all

# Thousands of random programs and a million supersteps; the outcome is kept as JSON.
soak: $(READY)
	$(BIN)/python tests/bsplib/soak.py

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy bsplib profiler webui apps

# Measures, keeps the figures as JSON, writes them into benchmarks/README.md, shows the goals.
# Without a network it measures without MPI.
bench: $(READY)
	@test $(PEERS) -nt pyproject.toml || { \
	  $(BIN)/python -m pip install --quiet --editable '.[bench]' && touch $(PEERS); } || \
	  echo "the MPIs to compare with could not be installed" >&2
	$(BIN)/python -m benchmarks

# The browser that the tests of the pages drive: any Chromium on the PATH.
browser:
	@command -v chromium chromium-browser google-chrome >/dev/null || { \
	  if [ "$$(id -u)" = 0 ]; then \
	    apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; \
	  else \
	    echo "make test needs a browser: apt-get install chromium" >&2; exit 1; \
	  fi; }

# A Debian python3 may come without venv and pip.
$(READY): pyproject.toml
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  if [ "$$(id -u)" = 0 ]; then \
	    apt-get update -qq && apt-get install -y -qq --no-install-recommends python3-venv; \
	  else \
	    echo "a virtual environment needs: apt-get install python3-venv" >&2; exit 1; \
	  fi; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $(READY)

clean:
	rm -rf $(VENV) out build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
