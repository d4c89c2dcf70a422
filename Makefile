# featurewatch. `make` alone lists the targets.

# A Python that is named, as in PYTHON=python3.13, has environments of its own: .venv-3.13, .venv-demo-3.13.
NAMED := $(if $(filter file undefined,$(origin PYTHON)),,$(patsubst python%,-%,$(notdir $(PYTHON))))
# Developers' environment, with the tests and Spark; and the demo's, which is a tenth of it.
VENV := .venv$(NAMED)
DEMO_VENV := .venv-demo$(NAMED)
BIN := $(VENV)/bin
# Those that are on PATH and start; else any that is new enough. They are looked for once, where a target
# needs one.
PYTHONS = $(eval PYTHONS := $$(shell for p in python3.11 python3.12 python3.13; do \
	$$$$p -c '' 2>/dev/null && echo $$$$p; done; true))$(PYTHONS)
PYTHON ?= $(or $(firstword $(PYTHONS)),$(shell \
	python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo python3))
# Tests and the demo start many processes, each of which would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE
# Makes environments in seconds; fetches a Python where there is none. Without it: venv and pip.
UV := $(shell command -v uv 2>/dev/null)

.DEFAULT_GOAL := help
.PHONY: help environment demo test test-fast test-matrix monitoring-tools kerberos-tools fuzz faults soak nightly lint types format generate generate-check docs bench release requirements mutants screenshots first-minute clean

help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# What an installation takes from pyproject.toml: settings of tools, and comments, change no environment.
# It keeps its time while it says the same, so that nothing is installed again.
INSTALLED := .cache/installed.toml

$(INSTALLED): pyproject.toml
	@mkdir -p $(@D)
	@awk '/^\[/ { tool = /^\[+tool\./ && !/^\[tool\.setuptools/ } !tool && !/^ *(#|$$)/' $< > $@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

$(VENV)/ready: WANTED := -e '.[stack,rocksdb,pipeline,shell,msk,mcp]' --group dev
$(DEMO_VENV)/ready: WANTED := -e '.[stack]'
$(VENV)/ready $(DEMO_VENV)/ready: $(INSTALLED) constraints.txt
	@echo "Setting up an environment in $(@D), which takes a minute."
ifdef UV
	@$(UV) venv --quiet --clear --python $(or $(PYTHON),3.11) $(@D)
	$(UV) pip install --python $(@D)/bin/python -c constraints.txt $(WANTED)
else
	@test -n "$(PYTHON)" || { echo "featurewatch needs Python 3.11 or newer on the PATH." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) has no venv module: install it (on Debian: python3-venv), or uv." >&2; exit 1; }
	@$(PYTHON) -m venv --clear $(@D)
# Groups of dependencies need pip 25.1, and Python 3.11 comes with an older one.
	$(if $(findstring --group,$(WANTED)),$(@D)/bin/python -m pip install --quiet --disable-pip-version-check 'pip>=25.1')
# Nine tenths of what it would compile is never imported.
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile \
		-c constraints.txt $(WANTED)
endif
	@touch $@

environment: $(VENV)/ready ## Create the developers' environment.

demo: $(DEMO_VENV)/ready ## Roll a real Kafka cluster from 3.9.1 to the newest release and watch it (KEEP=1: leave it up).
	@$(DEMO_VENV)/bin/featurewatch demo $(if $(KEEP),--keep) $(DEMO)

# Four on two cores: much of the time tests wait for processes.
WORKERS := 4

# A test that takes ten minutes fails with the stacks of its threads. One that cannot even fail, since
# its main thread waits in C, ends its process: pytest names it and goes on in another one.
DEADLINES := --timeout 600 -o faulthandler_timeout=660 -o faulthandler_exit_on_timeout=true

test: $(VENV)/ready ## Run every test, against real Kafka.
	@$(BIN)/python -m pytest -n $(WORKERS) $(DEADLINES) --durations=20 $(PYTEST)

test-fast: $(VENV)/ready ## Run the tests that need no Kafka, network or browser.
	@$(BIN)/python -m pytest -n $(WORKERS) $(DEADLINES) -m 'not stack and not network and not browser' $(PYTEST)

# Programs that no wheel has, for the tests of rules, receivers and the chart. Without them these tests are
# skipped.
TOOLS := $(CURDIR)/.cache/monitoring-tools
HELM := helm.sh/helm/v3/cmd/helm@v3.22.0

monitoring-tools: $(TOOLS)/usr/bin/promtool $(TOOLS)/usr/bin/helm ## Fetch Prometheus and Alertmanager (by apt-get) and Helm (by Go) for their tests.

$(TOOLS)/usr/bin/promtool:
	@mkdir -p $(TOOLS)
	@[ "$$(id -u)" != 0 ] || apt-get update -qq
	@cd $(TOOLS) && apt-get download -qq -o APT::Sandbox::User=root prometheus prometheus-alertmanager
	@cd $(TOOLS) && for package in *.deb; do dpkg -x "$$package" . || exit; done; rm *.deb
	@touch $@

$(TOOLS)/usr/bin/helm:
	@output=$$(GOBIN=$(@D) go install $(HELM) 2>&1) || { echo "$$output" >&2; exit 1; }

KERBEROS := $(CURDIR)/.cache/kerberos-tools
# A KDC with its libraries and programs, a clock that is ahead, and what the extra kerberos is built with.
KERBEROS_PACKAGES := krb5-kdc krb5-admin-server krb5-user libfaketime libkrb5-dev krb5-multidev comerr-dev \
	libev4 libgssapi-krb5-2 libgssrpc4 libk5crypto3 libkadm5clnt-mit12 libkadm5srv-mit12 libkdb5-10 \
	libkrb5-3 libkrb5support0 libss2 libverto1 libverto-libev1

kerberos-tools: $(KERBEROS)/usr/sbin/krb5kdc $(KERBEROS)/gssapi ## Fetch a KDC (by apt-get) and build the extra kerberos, for their tests.

$(KERBEROS)/usr/sbin/krb5kdc:
	@mkdir -p $(KERBEROS)
	@[ "$$(id -u)" != 0 ] || apt-get update -qq
	@cd $(KERBEROS) && apt-get download -qq -o APT::Sandbox::User=root $(KERBEROS_PACKAGES)
	@cd $(KERBEROS) && for package in *.deb; do dpkg -x "$$package" . || exit; done; rm *.deb
	@touch $@

# krb5-config knows the places of installed headers alone, so they are given.
$(KERBEROS)/gssapi: $(VENV)/ready
	@root=$(KERBEROS)/usr; libraries=$$(echo $$root/lib/*/mit-krb5); PATH=$$root/bin:$$PATH \
		GSSAPI_MAIN_LIB=$${libraries%/*}/libgssapi_krb5.so.2 \
		GSSAPI_COMPILER_ARGS="-I$$root/include/mit-krb5 -I$$root/include -DHAS_GSSAPI_EXT_H -O1" \
		GSSAPI_LINKER_ARGS="-L$$libraries -L$${libraries%/*} -lgssapi_krb5" \
		LD_LIBRARY_PATH=$${libraries%/*} \
		$(or $(and $(UV),$(UV) pip install --python $(BIN)/python),$(BIN)/python -m pip install --quiet --disable-pip-version-check) -c constraints.txt 'gssapi>=1.8,<2'
	@touch $@

# Minutes of `make fuzz`, for all entries together.
FUZZ_MINUTES ?= 60

fuzz: $(VENV)/ready ## Try random input on every entry, for FUZZ_MINUTES (60); findings go to tests/corpus.
	@$(BIN)/python -m pytest -m 'fuzz and not stack' --fuzz-minutes $(FUZZ_MINUTES) $(PYTEST)

# Other releases than those of tests/plugins/nightly.py: RELEASES=3.7.2,4.1.2.
RELEASES ?=

soak: $(VENV)/ready ## Run a disturbed stack for a long time, and print what grows (MINUTES=60).
	@$(BIN)/python -m tests.soak --minutes $(or $(MINUTES),60)

nightly: $(VENV)/ready ## Run every test with all random cases and new seeds, on more RELEASES of Kafka.
	@$(BIN)/python -m pytest -n $(WORKERS) $(DEADLINES) --nightly --releases '$(RELEASES)' --durations=20 $(PYTEST)

faults: $(VENV)/ready ## Break a running stack in every way (FAULTS="kill-* clock-*" REPEAT=20); see docs/explanation/faults.md.
	@$(BIN)/python -m tests.faults $(foreach row,$(FAULTS),'$(row)') --repeat $(or $(REPEAT),1)

# Where there is one Python alone, it says so and ends well.
OTHERS = $(filter-out $(PYTHON),$(PYTHONS))
LEFT_OUT = The matrix of Pythons is left out: $(PYTHON) is the only one on the PATH.

test-matrix: ## Run test-fast on each other supported Python that is installed.
	@$(if $(OTHERS),,echo "$(LEFT_OUT)")
	@set -e; for python in $(OTHERS); do $(MAKE) --no-print-directory test-fast PYTHON=$$python; done

lint: $(VENV)/ready generate-check ## Check style, types, the layers, words, and that generated files are current.
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports
	@$(BIN)/python -m scripts.check_words

types: $(VENV)/ready ## Check the types alone.
	@$(BIN)/mypy

format: $(VENV)/ready ## Lay the code out.
	@$(BIN)/ruff check --fix-only . && $(BIN)/ruff format .

generate: $(VENV)/ready ## Write all files, and parts of documents, that follow from the code.
	@$(BIN)/python -m scripts.generate

generate-check: $(VENV)/ready ## Name the generated files that are stale, as CI does.
	@$(BIN)/python -m scripts.generate --check

bench: $(VENV)/ready ## Measure speed and memory, each against a peer in the same run; one JSON line each.
	@$(BIN)/python -m tests.bench $(BENCH)

docs: $(VENV)/ready ## Build the site of the documents in build/site; any warning fails it.
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# Where it goes: OUT=/tmp/release.
release: $(VENV)/ready ## Build wheel, sdist, image, chart, man pages and SBOM of the last commit, twice, into dist (OUT=).
	@$(BIN)/python -m scripts.releasing $(if $(OUT),--out $(OUT)) $(if $(TAG),--tag $(TAG))

requirements: $(VENV)/ready ## Say which rows of the specification tests show; update docs/reference/requirements.md.
	@$(BIN)/python -m scripts.requirements --write

# Which: MUTANTS="M-45 C-17.2 reference/zookeeper/machines", rows, ids or parts of paths.
mutants: $(VENV)/ready ## Plant bugs in a copy, and see that the tests of their rows fail (MUTANTS="M-45").
	@$(BIN)/python -m tests.mutants $(MUTANTS)

screenshots: $(VENV)/ready ## Take the pictures of the page in docs/images anew (needs Chromium).
	@$(BIN)/python -m tests.web.screenshots

first-minute: ## Measure `make demo` in a fresh clone with empty caches: seconds and bytes fetched.
	@$(PYTHON) -m scripts.first_minute

clean: ## Remove the environments and what tools left behind.
	rm -rf .venv .venv-* build dist *.egg-info .cache .mypy_cache .pytest_cache .ruff_cache .hypothesis
