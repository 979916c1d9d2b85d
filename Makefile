# Every target sets up .venv if needed; the stamp makes that a no-op until the requirements or pyproject.toml change.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
SOURCES := Snakefile rules workflow

.PHONY: demo test test-slurm coverage test-programs lock schema docs site crate lint overlays bench clean
.DEFAULT_GOAL := demo

demo: $(STAMP)
	$(BIN)/snakemake --cores all

# Three processes on two cores, since the cluster tests mostly wait.
test: lint test-programs
	$(BIN)/pytest -n 3 --dist loadgroup --no-loadscope-reorder

# Tracing takes a third of the unit tests' time, so CI calls this once a week.
coverage: $(STAMP)
	$(BIN)/pytest tests/unit -n 2 --cov --cov-report=term:skip-covered

test-slurm: test-programs
	$(BIN)/pytest tests/slurm

# Chromium and SLURM, where root may install them with apt; otherwise nothing changes, and their tests are skipped.
test-programs: $(STAMP)
	$(BIN)/python -m tests.programs

# After requirements.txt was edited: versions and hashes of all packages, and the conda environments.
lock: $(STAMP)
	$(BIN)/pip install --quiet uv
	$(BIN)/python -m tools.lock

schema: $(STAMP)
	$(BIN)/python -m tools.schema

docs: $(STAMP)
	for pages in reference_pages api_page findings; do $(BIN)/python -m tools.$$pages || exit 1; done

# site/index.html opens without a server. With the report of `make demo` if that has run.
site: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# After a finished run: results/ro-crate-metadata.json, for an archive.
crate: $(STAMP)
	$(BIN)/python -m tools.crate

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check $(SOURCES)
	$(BIN)/snakemake --lint
	$(BIN)/mypy

overlays: $(STAMP)
	for overlay in configs/*.yaml; do $(BIN)/snakemake --dry-run --quiet --configfile $$overlay || exit 1; done

# QUICK=--quick takes less than two minutes per room.
bench: $(STAMP)
	for room in $(patsubst bench/%.py,%,$(wildcard bench/[a-z]*.py)); do $(BIN)/python -m bench.$$room $(QUICK) || exit 1; done

clean:
	rm -rf results/*/ results/report.html results/config.json logs .snakemake bench/results site

$(STAMP): requirements.txt requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("focalcal needs Python >= 3.11; $(PYTHON) is %d.%d; set PYTHON=..." % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --no-deps --require-hashes --requirement requirements.lock
	@# What is left is PyTorch, in the build for this machine.
	$(BIN)/pip install --quiet --requirement requirements.txt
	$(BIN)/pip install --quiet --no-deps --editable .
	touch $@
