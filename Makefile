PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: install run test check fix bench soak conformance lock clean

install: $(STAMP)

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

run: install
	$(BIN)/tenure serve

test: install
	$(BIN)/python -m pytest --ignore=tests/soak

check: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fix: install
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: install
	$(BIN)/python -m tests.bench

soak: install
	HYPOTHESIS_PROFILE=soak $(BIN)/python -m pytest tests/soak tests/properties

conformance: install
	$(BIN)/python -m tests.conformance

# Needs uv. Every version exact, with its hashes, for all platforms.
lock:
	uv pip compile --universal --generate-hashes --no-header --no-annotate --no-emit-index-url \
		--all-extras --output-file requirements.lock pyproject.toml

clean:
	rm -rf .venv build *.egg-info .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
