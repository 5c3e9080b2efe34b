# Two commands: `make demo` shows a training run end to end, `make test` proves everything.
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || echo python3)
VENV := .venv
BIN := $(VENV)/bin
STAMPS := .setup
# Where it is set, each of the many processes that a test starts compiles our modules anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMPS)/venv: pyproject.toml box/pyproject.toml constraints.txt
	@sh scripts/preflight.sh $(PYTHON)
	@mkdir -p $(STAMPS)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[box]' --editable ./box
	@touch $@

$(STAMPS)/dev: $(STAMPS)/venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[box,dev]' --editable ./box
	@touch $@

.PHONY: setup
setup: $(STAMPS)/venv ## Make the environment (.venv)

.PHONY: demo
demo: $(STAMPS)/venv ## Train a small network from nothing, end to end
	@$(MAKE) --silent dashboard || echo "demo: no dashboard here (see above); the API works without it"
	@$(BIN)/python scripts/demo.py

.PHONY: serve
serve: $(STAMPS)/venv ## Run the stack in the foreground until Ctrl-C
	@$(MAKE) --silent dashboard || echo "serve: no dashboard here (see above); the API works without it"
	@$(BIN)/yard up

DASHBOARD := service/dashboard
DASHBOARD_SOURCES := openapi.json scripts/build_dashboard.sh $(shell find $(DASHBOARD) -type f \
	-not -path '*/node_modules/*' -not -path '*/dist/*' -not -name schema.d.ts -not -name '*.test.ts')

$(DASHBOARD)/dist/index.html: $(STAMPS)/venv $(DASHBOARD_SOURCES)
	@sh scripts/build_dashboard.sh $(BIN) build
	@touch $@

.PHONY: dashboard
dashboard: $(DASHBOARD)/dist/index.html ## Build the web dashboard

# Without what an earlier build has left: setuptools would take up modules that are gone.
.PHONY: dist
dist: $(STAMPS)/dev dashboard ## Build wheels and sdists of both distributions
	rm -rf dist build box/build
	$(BIN)/python -m build --no-isolation --outdir dist
	$(BIN)/python -m build --no-isolation --outdir dist box

.PHONY: lint
lint: $(STAMPS)/dev ## Check style, types and import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	sh scripts/build_dashboard.sh $(BIN) lint

# Types take one core for half a minute, and the tests leave them one: both at once.
.PHONY: check
check: $(STAMPS)/dev ## Check format, lint, types, contracts and run the unit tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target check-types check-units

.PHONY: check-types check-units
check-types:
	$(BIN)/lint-imports
	$(BIN)/mypy
check-units:
	$(BIN)/pytest tests/unit -q --numprocesses=logical --maxprocesses=4

$(STAMPS)/browser: $(STAMPS)/dev scripts/browser.sh
	@sh scripts/browser.sh $(BIN)
	@touch $@

# Frameworks and trackers in an environment of their own, as users have them; none of it is needed to run.
$(STAMPS)/compat: $(STAMPS)/venv tests/compat/requirements.txt tests/compat/constraints.txt
	$(PYTHON) -m venv $(VENV)-compat
	$(VENV)-compat/bin/pip install --quiet --constraint tests/compat/constraints.txt --requirement tests/compat/requirements.txt
	@touch $@

# Tests wait about as much as they compute: one process more than there are cores, and no more than four.
PROCESSES := $(shell cores=$$(getconf _NPROCESSORS_ONLN); echo $$((cores < 4 ? cores + 1 : 4)))

.PHONY: test
test: $(STAMPS)/dev $(STAMPS)/compat $(STAMPS)/browser dashboard ## Run every test
	@sh scripts/build_dashboard.sh $(BIN) test
	$(BIN)/pytest --numprocesses=$(PROCESSES) --dist=loadfile --no-loadscope-reorder

.PHONY: coverage
coverage: $(STAMPS)/dev ## Measure the branch coverage of the unit and integration tests
	$(BIN)/pytest tests/unit tests/integration -q --numprocesses=logical --maxprocesses=4 --dist=loadfile --cov --cov-report=
	$(BIN)/python -m coverage report --format=total

.PHONY: mutants
mutants: $(STAMPS)/dev ## Plant faults in a copy and demand that tests notice
	$(BIN)/python scripts/mutants.py $(MUTANTS)

# Ten minutes on two cores; more runs where figures are published (docs/benchmarks.md).
.PHONY: bench
bench: $(STAMPS)/dev $(STAMPS)/browser dashboard ## Measure ourselves: tables, results.json and pictures
	$(BIN)/python -m benchmarks --runs 2
	$(BIN)/python -m benchmarks.dashboard --seconds 12
	$(BIN)/python -m benchmarks.compare
	$(BIN)/python -m benchmarks.training --runs 1
	$(BIN)/python -m benchmarks.watchers --seconds 10 --record
	$(BIN)/python -m benchmarks.history --ended 20000 --queued 2000 --times 10 --record
	$(BIN)/python -m benchmarks.plots

.PHONY: bench-peers
bench-peers: $(STAMPS)/dev ## Install other queues and measure them beside ours
	$(BIN)/python -m benchmarks.peers
	$(BIN)/python -m benchmarks.plots

.PHONY: clean
clean: ## Remove what the other targets made
	rm -rf $(VENV) $(VENV)-compat $(VENV)-peers $(STAMPS) dist build box/build $(DASHBOARD)/node_modules $(DASHBOARD)/dist
