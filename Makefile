# Everything that is done to this project, by name. `make` alone lists it.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
QUESTION ?= What animal is this?

.DEFAULT_GOAL := help
.PHONY: help ask test check types unit chromium test-vllm bench bench-vllm soak gpu-smoke clean

help:  ## Lists the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

ask: $(VENV)/.installed  ## Sets up, fetches the embedded model, and asks a society about a photograph
	$(BIN)/nlsom ask vqa-monarchy "$(QUESTION)" --image sample:cat --choices cat,dog,horse,bird

test: check types unit  ## Sets up, and runs every check and test

check: $(VENV)/.developing  ## Style, and which way imports point
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/.developing  ## Types: strictly over the project, and over examples/ as a user would
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/mypy examples

unit: $(VENV)/.developing chromium  ## The tests, with real models, and their coverage
	$(BIN)/nlsom models pull smollm2-135m qwen2.5-coder-1.5b minilm-l6-v2
	$(BIN)/pytest --cov --cov-report=term $(ARGS)

chromium:  # A browser for the tests of the page: found, named in NLSOM_CHROMIUM, or installed
	@test -n "$$NLSOM_CHROMIUM" || command -v chromium >/dev/null || \
		{ apt-get update -qq && apt-get install -y -qq chromium curl; } || \
		{ echo 'no Chromium: install it, or name one in NLSOM_CHROMIUM'; exit 2; }

test-vllm: $(VENV)/.developing  ## Real vLLM servers on this CPU, in a virtual environment of their own
	$(BIN)/python tests/integration/vllm/make_env.py
	$(BIN)/pytest -m vllm tests/integration $(ARGS)

bench: $(VENV)/.developing  ## The ratios that nlsom is measured by
	$(BIN)/python benchmarks/core.py $(ARGS)
	$(BIN)/python benchmarks/embedded.py $(ARGS)
	$(BIN)/python benchmarks/trace.py
	$(BIN)/python benchmarks/nats_bench.py
	$(BIN)/python benchmarks/serve_load.py
	$(BIN)/python benchmarks/captions.py
	$(BIN)/python benchmarks/bench_runner.py
	$(BIN)/python benchmarks/certain_stop.py
	$(BIN)/python benchmarks/societies.py

bench-vllm: $(VENV)/.developing  ## The ratios against a real vLLM
	$(BIN)/python benchmarks/vllm_bench.py $(ARGS)
	$(BIN)/python benchmarks/vllm_saturation.py $(ARGS)

soak: $(VENV)/.developing  ## Long runs, repeated kills, big counts; by hand
	$(BIN)/python benchmarks/soak.py $(ARGS)
	$(BIN)/python benchmarks/serve_soak.py

gpu-smoke: $(VENV)/.installed  ## A real vision-language model on a GPU
	$(BIN)/python serve/gpu_smoke.py $(ARGS)

clean:  ## Removes what was made here; models stay in the cache folder
	rm -rf $(VENV) .pytest_cache .ruff_cache .mypy_cache .hypothesis .import_linter_cache .coverage*

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo 'nlsom needs Python 3.11 or later: make PYTHON=python3.12 …'; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	@touch $@

$(VENV)/.installed: $(VENV)/.python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[all]'
	@touch $@

$(VENV)/.developing: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --group dev
	@touch $@
