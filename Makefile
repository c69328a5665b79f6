# `make demo` shows what Syncline does, `make test` runs all tests. docs/development.md describes the rest.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PACKAGES := $(VENV)/.packages
# The same without the tools of developers, which `make demo` does not need: they take a tenth of its CPU time.
RUNTIME_STAMP := $(VENV)/.installed-runtime
RUNTIME_PACKAGES := $(VENV)/.packages-runtime
CORE := converter/target/release/lib_core.so
CORE_SOURCES := $(shell find converter/core converter/binding -name '*.rs' -o -name Cargo.toml) converter/Cargo.toml converter/Cargo.lock
PAGE := converter/syncline/report/page/page.html
PAGE_SOURCES := $(shell find converter/page -name node_modules -prune -o -type f -print)
PLUGIN := converter/syncline/ui/plugin/plugin.js
PLUGIN_SOURCES := $(shell find perfetto-ui-plugin sql/macros sql/reports sql/tables/perfetto sql/views/plugin \( -name node_modules -o -name generated -o -name build \) -prune -o -type f -print)
# All builds of the extension have these settings: after a change of one, cargo compiles pyo3 again.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python3
export PYO3_BUILD_EXTENSION_MODULE := 1
ARM64 := aarch64-unknown-linux-gnu
DEMO_RUNS := tests/data/known-truth/postgres.tar.xz
DEMO_RUN := demo/postgres-neighbour

.PHONY: demo test test-quick page plugin plugin-types extension-server pictures lint format bench accuracy wheel wheel-arm64 images sdist constraints notices kernel-test arm64-test spark-test record-fixtures clean help

help:
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 17

demo: $(RUNTIME_STAMP) ## unpack a recording, print its report, and name the command that opens its timeline
	@mkdir -p demo
	@# Python unpacks it, because tar needs xz.
	$(BIN)/python -m tarfile -e $(DEMO_RUNS) demo
	$(BIN)/syncline report $(DEMO_RUN)
	$(BIN)/syncline convert $(DEMO_RUN) -o $(DEMO_RUN).pftrace
	@echo
	@echo "PostgreSQL was recorded while another program wrote to its disk. Look at the timeline with"
	@echo "    $(BIN)/syncline open $(DEMO_RUN).pftrace             in ui.perfetto.dev"
	@echo "    $(BIN)/syncline open --offline $(DEMO_RUN).pftrace   with no network"
	@echo "How to read it: docs/guides/reading-a-timeline.md. More reports: $(BIN)/syncline report --help"

test: $(STAMP) ## all tests; as root it installs the packages that they need
	tests/run.sh

test-quick: $(STAMP) ## some tests of each part, in less than a minute once they are built
	tests/run.sh --quick

page: $(PAGE) ## build the page of `syncline report --html`

plugin: $(PLUGIN) ## build the plugin for the Perfetto UI of `syncline open --offline`

extension-server: $(STAMP) ## write the files of the extension server for the Perfetto UI, after a change of sql/views/timeline or sql/tables/perfetto
	$(BIN)/syncline extension-server --out perfetto-ui-plugin/extension-server

plugin-types: ## check the plugin against the sources of named Perfetto releases, which it fetches
	cd perfetto-ui-plugin && npm ci --no-audit --no-fund --loglevel=error && npm run --silent sql && node check/check.mjs

pictures: $(STAMP) ## take the pictures of the documentation, and ten views of the timeline into build/views
	$(BIN)/python -m tools.pictures
	$(BIN)/python -m tools.views

lint: $(STAMP) ## run formatters and linters; check the direction of imports and the wording
	tests/lint.sh

format: $(STAMP) ## fix what `make lint` finds, where a tool can
	tests/lint.sh --fix

bench: $(STAMP) ## measure speed and memory against peers in the same run (minutes; 2 GB of disk)
	$(BIN)/python tests/bench/run.py
	$(BIN)/python tests/bench/page.py
	$(BIN)/python tests/bench/view.py

accuracy: $(STAMP) ## measure how often Syncline is right where the truth is known (minutes)
	$(BIN)/python -m tests.accuracy.run
	$(BIN)/python -m tests.accuracy.whatif

wheel: $(STAMP) ## build dist/*.whl
	$(BIN)/python -m build --wheel --outdir dist .

wheel-arm64: $(STAMP) ## build dist/*_aarch64.whl on another machine
	@command -v aarch64-linux-gnu-gcc >/dev/null || { echo "A compiler for arm64 is needed: apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross"; exit 2; }
	@rustup target list --installed | grep -qx $(ARM64) || { echo "Rust lacks the target: rustup target add $(ARM64)"; exit 2; }
	CARGO_BUILD_TARGET=$(ARM64) CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc PYO3_CROSS_PYTHON_VERSION=3.11 \
	  _PYTHON_HOST_PLATFORM=linux-aarch64 $(BIN)/python -m build --wheel --outdir dist .

images: ## build the container images syncline and syncline-record, from dist/*.whl
	@ls dist/*_$$(uname -m).whl >/dev/null 2>&1 || { echo "There is no wheel for $$(uname -m) in dist/: make wheel"; exit 2; }
	docker build -f docker/analysis.Dockerfile -t syncline .
	docker build -f docker/record.Dockerfile -t syncline-record .

sdist: $(STAMP) ## build dist/*.tar.gz, which contains the built page
	$(BIN)/python -m build --sdist --outdir dist .

constraints: $(STAMP) ## write the installed versions to constraints.txt
	{ grep '^#' constraints.txt; $(BIN)/pip freeze --exclude-editable; } >constraints.new
	mv constraints.new constraints.txt

notices: $(STAMP) ## write the licences of linked crates to converter/NOTICES.md
	$(BIN)/python -m tests.lint.notices --write

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or later is needed; name it: make PYTHON=/path/to/python3.11 ..."; exit 2; }
	@command -v cargo >/dev/null || { echo "Rust is needed (cargo was not found): see https://rustup.rs"; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(PAGE): $(PAGE_SOURCES)
	@command -v npm >/dev/null || { echo "Node.js 20 or later with npm is needed to build the page of HTML reports (npm was not found): apt-get install nodejs npm"; exit 2; }
	cd converter/page && npm ci --no-audit --no-fund --loglevel=error && npm run --silent build

$(PLUGIN): $(PLUGIN_SOURCES)
	@command -v npm >/dev/null || { echo "Node.js 20 or later with npm is needed to build the plugin for the Perfetto UI (npm was not found): apt-get install nodejs npm"; exit 2; }
	cd perfetto-ui-plugin && npm ci --no-audit --no-fund --loglevel=error && npm run --silent build

$(CORE): $(BIN)/python $(CORE_SOURCES)
	cargo build -q --release --manifest-path converter/Cargo.toml -p syncline-binding
	@touch $@

# Most modules of the packages are never imported, so pip does not compile them.
PIP_INSTALL := $(BIN)/pip install -q --disable-pip-version-check --no-compile -c constraints.txt

$(PACKAGES) $(RUNTIME_PACKAGES): $(BIN)/python pyproject.toml constraints.txt
	@$(BIN)/python -c 'import sys, tomllib; p = tomllib.load(open("pyproject.toml", "rb"))["project"]; e = p["optional-dependencies"]; \
	  print(*p["dependencies"], *sum((e[name] for name in sys.argv[1:]), []), sep="\n")' $(EXTRAS) | grep -v '^syncline' >$@
	$(PIP_INSTALL) -r $@ || { rm $@; exit 1; }
$(PACKAGES): EXTRAS := dev s3

INSTALLED := $(BIN)/python pyproject.toml setup.py constraints.txt $(CORE_SOURCES) $(PAGE_SOURCES) $(PLUGIN_SOURCES)

# Packages and the bundles of JavaScript wait for the network while cargo compiles. The build that pip starts finds all of them.
$(STAMP): $(INSTALLED)
	@$(MAKE) --no-print-directory --jobs=4 $(CORE) $(PACKAGES) $(PAGE) $(PLUGIN)
	$(PIP_INSTALL) -e '.[dev]'
	@touch $(RUNTIME_STAMP) $@

$(RUNTIME_STAMP): $(INSTALLED)
	@$(MAKE) --no-print-directory --jobs=4 $(CORE) $(RUNTIME_PACKAGES) $(PAGE) $(PLUGIN)
	$(PIP_INSTALL) -e .
	@touch $@

kernel-test: $(STAMP) ## test workloads and recorders in a QEMU guest (minutes; the first time, as root, five more)
	tests/kernel/test.sh

arm64-test: wheel-arm64 ## run the wheel for arm64 in an emulator (minutes; needs qemu-user and a network)
	tests/arm64.sh

spark-test: $(STAMP) ## compare Spark with DuckDB on a cluster of three workers (minutes; 500 MB of packages; needs Java 17)
	$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev,spark]'
	SYNCLINE_SPARK=1 $(BIN)/python -m pytest -q tests/spark

record-fixtures: ## record workloads in the guest into build/recordings
	tests/kernel/record.sh

clean: ## remove what was built here
	rm -rf $(VENV) build dist demo converter/target converter/page/node_modules $(dir $(PAGE)) perfetto-ui-plugin/node_modules perfetto-ui-plugin/src/generated $(dir $(PLUGIN)) *.egg-info
