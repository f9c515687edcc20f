# Seatrial: `make trial` runs the shipped probes on this machine, `make test` runs every test.
# Each sets up all that it needs below .venv; nothing else is touched, but that `make test`, as root,
# installs from Debian what the tests run for real: Slurm, HPCC, LAMMPS, GROMACS, Quantum ESPRESSO,
# PostgreSQL, InfluxDB, Chromium.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MPICH := .venv-mpich
TOOLCHAIN ?= default
REPEAT ?= 5
# Six at a time on two cores, as many tests wait for something; a file's tests stay together.
PYTEST_ARGS ?= -n 6 --dist loadfile --no-loadscope-reorder
# In a new checkout each of those six would compile all tests; two processes compile half of them each.
COMPILE_TESTS = ls -d tests/*/ | xargs -n 8 -P 2 $(BIN)/python -m pytest --collect-only -qq > /dev/null || true
# How many mutants `make mutants` tries, or all; drawn by the seed.
MUTANTS ?= 400
SEED ?= 1
JOBS ?= 2
# How many trials of each kind `make torture` attacks.
TIMES ?= 50
REAL_PARTS := slurm gridengine recipes applications hdf5 io fuse postgresql influxdb chromium shells openssh hwloc scotch containers modules boot

.PHONY: trial tune test mutants torture bench lint types format setup setup-dev lock docs reference dist zipapp clean help

help:
	@echo "make trial   run the shipped probes on this machine (under 4 minutes)"
	@echo "make tune    tune LAMMPS, GROMACS and Quantum ESPRESSO on this machine (under 10 minutes)"
	@echo "make test    run every test, on a real Slurm, PostgreSQL, InfluxDB and Chromium"
	@echo "make mutants change the source in small ways and see whether the tests notice (20 minutes)"
	@echo "make torture attack trials: power cuts, kills, clocks, full disks, other users (root; hours)"
	@echo "make bench   measure the claims of docs/explanations/performance.md"
	@echo "make lint    ruff, mypy in strict mode, and no plain opens below trials"
	@echo "make reference  print every command, key, event, criterion and exit code with its explanation"
	@echo "make docs    build the documentation as a site, with pictures of the pages (build/site)"
	@echo "make dist    build wheel and sdist into dist/"
	@echo "make zipapp  build one file that installs Seatrial on a host without a network"
	@echo "make clean   remove the environment"

trial: setup
	$(BIN)/seatrial run suites/probes --toolchain $(TOOLCHAIN) --repeat $(REPEAT)

tune: setup
	sh tools/tune.sh $(BIN)/seatrial

test: setup-dev $(MPICH)/.ready
	@for what in $(REAL_PARTS); do \
	  sh tests/install-packages.sh $$what || echo "$$what could not be installed: see which tests did not run"; \
	done
	@test -d tests/__pycache__ || $(COMPILE_TESTS)
	$(BIN)/python -m pytest $(PYTEST_ARGS)

mutants: setup-dev
	$(BIN)/python tools/mutants.py $(MUTANTS) --seed $(SEED) --jobs $(JOBS)

torture: setup-dev
	@for what in slurm torture; do sh tests/install-packages.sh $$what; done
	$(BIN)/python -m torture $(ATTACKS) --times $(TIMES) --seed $(SEED)

bench: setup-dev
	@for what in $(REAL_PARTS); do sh tests/install-packages.sh $$what; done
	$(BIN)/python -m bench

lint: setup-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python tools/check_opens.py
	$(BIN)/python tools/house.py --check

format: setup-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

setup: $(VENV)/.ready
setup-dev: $(VENV)/.ready-dev

$(VENV)/.ready: requirements.lock pyproject.toml
	@sh tools/check-python.sh $(PYTHON)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

$(VENV)/.ready-dev: requirements-dev.lock $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	touch $@

# MPICH, with which some tests start ranks; beside Open MPI in one environment it would replace its mpirun.
$(MPICH)/.ready: tests/requirements-mpich.lock
	test -x $(MPICH)/bin/python || $(PYTHON) -m venv $(MPICH)
	$(MPICH)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r tests/requirements-mpich.lock
	touch $@

# Newer versions: edit pyproject.toml, then `make lock`. Needs uv, which setup-dev brings.
lock: setup-dev
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --extra mpi --extra build pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --all-extras pyproject.toml -o requirements-dev.lock

reference: setup
	@$(BIN)/python -m tools.docs_reference

docs: setup-dev
	@sh tests/install-packages.sh chromium
	$(BIN)/python -m tools.docs_site --pictures

# The wheel is built from the sdist, as by those who take only that.
dist: setup
	rm -rf dist
	$(BIN)/python -m hatchling build -t sdist -d dist
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-index \
	  --wheel-dir dist dist/seatrial-*.tar.gz

zipapp: dist
	$(BIN)/python tools/zipapp.py dist/seatrial-*.whl

clean:
	rm -rf $(VENV) $(MPICH) mutants dist build
