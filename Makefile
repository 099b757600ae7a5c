# Two commands: `make reproduce` and `make test`. `make help` lists the rest.
RUN ?= default
# Cores at once; without it as the profile says: all for a local run.
CORES ?=
# workflow/profiles/slurm runs the jobs on a Slurm cluster: docs/running.md
PROFILE ?= workflow/profiles/default
# The first that runs; results are made with 3.11.
PYTHON ?= $(or $(shell for one in python3.11 python3.12 python3.13; do $$one -c '' 2> /dev/null && echo $$one && break; done),python3.11)
BIN := .venv/bin
REBUILD = $(BIN)/silodp rebuild --profile $(PROFILE) $(if $(CORES),--cores $(CORES))
# Another publication than results/published, beside it: TO=published-protocols
TO ?= published
PUBLISHED = $(BIN)/silodp rebuild results/$(TO)/config.json $(if $(CORES),--cores $(CORES)) \
    -- --snakefile workflow/published.smk --forceall
# Threads of BLAS and OpenMP would multiply with processes side by side.
export OMP_NUM_THREADS ?= 1
# What was typed, for the provenance of a run; a make that is called by this one keeps it.
export SILODP_COMMAND ?= $(strip make $(MAKECMDGOALS) $(MAKEOVERRIDES))
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: help reproduce paper figure figures report publish claims decided federation test test-slow lint docs bench install clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

reproduce: .venv/installed  ## rebuild everything of RUN (default: config/default.yaml, on data that needs no download), or of several ("a b")
	@for run in $(RUN); do $(REBUILD) config/$$run.yaml && echo "results/$$run/report.html is up to date" || exit; done

paper: .venv/installed  ## the paper-scale rebuild: fetches MNIST, takes hours
	@$(MAKE) --no-print-directory reproduce RUN=paper

# As in make figure FIG=nonconvex-4 TRIALS=2; docs/start.md has all names and what they take.
figure: .venv/installed  ## one figure of a paper by itself: FIG=nonconvex-4 [TRIALS=2]
	@$(BIN)/silodp replicate $(FIG) $(if $(TRIALS),--trials $(TRIALS)) $(if $(CORES),--cores $(CORES)) --profile $(PROFILE)

figures: .venv/installed  ## the published figures drawn again from their tables; trains nothing
	@$(PUBLISHED) redrawn

report: .venv/installed  ## the published report page made again from its tables; trains nothing
	@$(PUBLISHED)

publish: .venv/installed  ## copy tables and figures of RUN, or of several, to results/published (TO), with their page; BESIDE=1 keeps others there, but for those WITHOUT="a b" made
	$(BIN)/silodp publish $(if $(BESIDE),--beside) $(addprefix --without ,$(WITHOUT)) --output results/$(TO) $(addprefix results/,$(RUN))
	@$(PUBLISHED)

claims: .venv/installed  ## verdicts on the papers' claims, from the published tables
	@$(BIN)/silodp claims results/$(TO)

decided: .venv/installed  ## the decided tables of docs/claims.md: fresh trials, hours, resumable; FAMILY="calibrated" for some
	@$(BIN)/silodp fetch insurance mnist
	@$(BIN)/silodp decided trials $(FAMILY)
	@$(BIN)/silodp decided tables

federation: .venv/federate  ## three silos and a coordinator on this machine, each with its own file, noise and ledger
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python benchmarks/federation.py

test: .venv/installed  ## the tests
	$(BIN)/python -m pytest -n $(or $(PYTEST_JOBS),2)

test-slow: .venv/installed  ## the tests that take minutes: kills and restarts of a rebuild (SILODP_KILLS)
	$(BIN)/python -m pytest -m slow -n $(or $(PYTEST_JOBS),2)

lint: .venv/installed  ## formatters, linters and types, changing nothing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile workflow
	$(BIN)/mypy

docs: .venv/installed  ## write the schema, the numbers and tables of README and docs, and the texts that tests hold again
	$(BIN)/silodp config schema > config/schema.json
	for file in tests/test_registered.py tests/cli/test_said.py tests/own_data/test_told.py; do PYTHONPATH=tests/helpers $(BIN)/python $$file || exit; done
	$(BIN)/python .ci/derived
	$(BIN)/python .ci/rules-picture

bench: .venv/installed .peer/installed  ## speed and memory against targets and peers, on a machine that does nothing else
	$(BIN)/python benchmarks/run.py --output benchmarks/RESULTS.md
	PYTHONPATH=.peer $(BIN)/python benchmarks/scale.py --output benchmarks/RESULTS.md
	$(BIN)/python benchmarks/own_scale.py

install: $(if $(filter triton,$(EXTRA)),.triton/installed,.venv/$(or $(EXTRA),installed))  ## the environment alone, or what EXTRA=kubernetes|cloud|natural|federate|triton|docs needs beside

clean: .venv/installed  ## remove the results of RUN, or of several: their own folders and nothing else
	@$(BIN)/silodp clean --all $(RUN)

.venv/installed: requirements.lock pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) --requirement requirements.lock
	$(PIP) --no-deps --no-build-isolation --editable .
	$(BIN)/python -m pip check --disable-pip-version-check
	@touch $@

.venv/kubernetes .venv/cloud .venv/docs: .venv/%: requirements/%.lock .venv/installed
	$(PIP) --requirement $<
	@touch $@

.venv/natural .venv/federate: .venv/%: requirements/%.lock .venv/installed
	$(PIP) --no-deps --requirement $<
	@touch $@

# Triton, and a peer of the benchmarks, beside the project's packages: they install nothing into their environment, and run
# with the locked ones.
.triton/installed .peer/installed: .%/installed: requirements/%.lock .venv/installed
	rm -rf .$*
	$(PIP) --no-deps --target .$* --requirement $<
	@touch $@
