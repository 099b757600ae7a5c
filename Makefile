# Two commands: `make reproduce` and `make test`. `make help` lists the rest.
RUN ?= default
# Cores at once; without it as the profile says: all for a local run.
CORES ?=
# workflow/profiles/slurm runs the jobs on a Slurm cluster: docs/cluster.md
PROFILE ?= workflow/profiles/default
PYTHON ?= python3.11
BIN := .venv/bin
REBUILD = $(BIN)/silodp rebuild --profile $(PROFILE) $(if $(CORES),--cores $(CORES))
PUBLISHED = $(BIN)/silodp rebuild results/published/config.json $(if $(CORES),--cores $(CORES)) \
    -- --snakefile workflow/published.smk
SUDO := $(if $(filter-out 0,$(shell id -u)),sudo)
# Threads of BLAS and OpenMP would multiply with processes side by side.
export OMP_NUM_THREADS ?= 1

.PHONY: help reproduce smoke figures report publish bounds checkins claims paper test test-slow test-browser test-slurm kubernetes bench lint format docs clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

.venv/installed: requirements.lock pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	$(BIN)/python -m pip check --disable-pip-version-check
	@touch $@

reproduce: .venv/installed  ## rebuild everything of RUN (default: config/default.yaml) on data that needs no download
	@$(REBUILD) config/$(RUN).yaml
	@echo "results/$(RUN)/report.html is up to date"

smoke: .venv/installed  ## the default run in miniature, under a minute
	@$(MAKE) --no-print-directory reproduce RUN=smoke

figures: .venv/installed  ## the published figures drawn again from their tables; trains nothing
	@$(PUBLISHED) figures

report: .venv/installed  ## the published report page made again from its tables; trains nothing
	@$(PUBLISHED)

publish: .venv/installed  ## copy tables and figures of RUN, or of several ("a b"), to results/published, with their page
	$(BIN)/silodp publish $(addprefix results/,$(RUN))
	@$(PUBLISHED)

bounds: .venv/installed  ## the papers' bounds held against runs: tables and figures of RUN
	@$(REBUILD) config/$(RUN).yaml -- bounds

checkins: .venv/installed  ## random check-ins against other amplification, for RUN
	@$(REBUILD) config/$(RUN).yaml -- checkins

paper: .venv/installed  ## the paper-scale rebuild: fetches MNIST, takes hours
	@$(MAKE) --no-print-directory reproduce RUN=paper

test: .venv/installed  ## the tests
	$(BIN)/python -m pytest -n $(or $(PYTEST_JOBS),2)

test-slow: .venv/installed  ## the tests that take minutes: kills and restarts of a rebuild
	$(BIN)/python -m pytest -m slow

test-browser: .venv/installed  ## the report page in a headless Chromium, installed by apt-get if it is not there
	@command -v chromedriver > /dev/null || { $(SUDO) apt-get update && $(SUDO) apt-get install -y chromium chromium-driver; }
	$(BIN)/python -m pytest -m browser tests/browser

claims: .venv/installed  ## verdicts on the papers' claims, from the published tables
	@$(BIN)/silodp claims results/published

test-slurm: .venv/installed  ## the workflow on a private Slurm: kills of jobs, nodes, Snakemake (installs Slurm: root)
	$(BIN)/python -m pytest -v -n 0 -m slurm tests/cluster

kubernetes: .venv/installed  ## install what the Kubernetes profile needs
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements-kubernetes.lock

bench: .venv/installed  ## speed and memory against targets and peers, on a machine that does nothing else
	$(BIN)/python benchmarks/run.py --output benchmarks/RESULTS.md

lint: .venv/installed  ## formatters, linters and types, changing nothing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile workflow
	$(BIN)/mypy

format: .venv/installed  ## format code and workflow
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/snakefmt Snakefile workflow

docs: .venv/installed  ## write the schema and the reference page again
	$(BIN)/silodp config schema > config/schema.json
	$(BIN)/silodp config reference > docs/configuration.md

clean:  ## remove the results of RUN
	rm -rf results/$(RUN)
