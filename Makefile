# Two commands do all: `make demo` shows what Syncline does, `make test` proves it. docs/development.md has the rest.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
CORE_SOURCES := $(shell find converter/core converter/binding -name '*.rs' -o -name Cargo.toml) converter/Cargo.toml converter/Cargo.lock
PAGE := converter/syncline/report/page/page.html
PAGE_SOURCES := $(shell find converter/page -name node_modules -prune -o -type f -print)
DEMO_LOG := tests/data/thesis/small4-slowdisk.log

.PHONY: demo test page lint format bench fuzz wheel kernel-test record-fixtures clean help

help:
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 17

demo: $(STAMP) ## convert a real recording, print its summary, say how to look at the trace
	@mkdir -p demo
	$(BIN)/syncline convert $(DEMO_LOG) -o demo/small4-slowdisk.pftrace
	$(BIN)/syncline report demo/small4-slowdisk.pftrace
	@echo
	@echo "The trace is demo/small4-slowdisk.pftrace: four threads save 100 small files on a slow disk. Look at it with"
	@echo "    $(BIN)/syncline open demo/small4-slowdisk.pftrace             in ui.perfetto.dev"
	@echo "    $(BIN)/syncline open --offline demo/small4-slowdisk.pftrace   with no network"
	@echo "and see which thread waited for what: docs/reading-a-timeline.md. More numbers: $(BIN)/syncline report --help"

test: $(STAMP) ## all tests; installs what they need
	tests/run.sh

page: $(PAGE) ## the page of `syncline report --html`

lint: $(STAMP) ## formatters and linters for Rust, Python and SQL
	tests/lint.sh

format: $(STAMP) ## mend what `make lint` finds, where it can be mended by a tool
	tests/lint.sh --fix

bench: $(STAMP) ## speed and memory against peers in the same run (minutes; 2 GB of disk)
	$(BIN)/python tests/bench/run.py
	$(BIN)/python tests/bench/page.py

wheel: $(STAMP) ## dist/*.whl
	$(BIN)/pip wheel -q --no-deps -w dist .

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or later is needed; name it: make PYTHON=/path/to/python3.11 ..."; exit 2; }
	@command -v cargo >/dev/null || { echo "Rust is needed (cargo was not found): see https://rustup.rs"; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(PAGE): $(PAGE_SOURCES)
	@command -v npm >/dev/null || { echo "Node.js 20 or later with npm is needed to build the page of reports (npm was not found)"; exit 2; }
	cd converter/page && npm ci --no-audit --no-fund --loglevel=error && npm run --silent build

$(STAMP): $(BIN)/python pyproject.toml $(CORE_SOURCES) $(PAGE)
	$(BIN)/pip install -q --disable-pip-version-check -e '.[dev]'
	@touch $@

kernel-test: ## workloads and recorders in a guest (QEMU; minutes; the first time, as root, five more)
	tests/kernel/test.sh

record-fixtures: ## record workloads in the guest into build/recordings
	tests/kernel/record.sh

clean: ## what was built here
	rm -rf $(VENV) build dist demo converter/target converter/page/node_modules $(dir $(PAGE)) *.egg-info
