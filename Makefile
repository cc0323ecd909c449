# Systolith. `make help` lists everything; each target sets up what it needs.
VENV   := .venv
PY     := $(VENV)/bin/python
PYTHON ?= python3
CONFIG ?= base
STAMP  := $(VENV)/.ready
FUZZ   ?= tiny small edge drawn:1
SECONDS ?= 300
SEED   ?= 0

.PHONY: help setup sim test lint lint-rtl synth-check verilog bench fuzz fpga-report clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16
	@echo "CONFIG=tiny|small|base|edge|trn chooses the configuration where one is needed (now $(CONFIG))"

setup: $(STAMP) ## make the virtual environment and check the system tools
$(STAMP): pyproject.toml scripts/setup.sh
	@rm -f $@
	@PYTHON=$(PYTHON) bash scripts/setup.sh $(VENV)
	@touch $@

sim: $(STAMP) ## write the RTL, run the cocotb regression and the program suite against golden: one table
	$(PY) -W ignore -m tb.sim

test: $(STAMP) ## everything to run before landing
	$(PY) -m ruff check .
	$(PY) -m pytest -n 2

lint: $(STAMP) ## style
	$(PY) -m ruff check .

lint-rtl: $(STAMP) ## verilator --lint-only -Wall on the Verilog, with the reasons of what is waived
	$(PY) -W ignore -m tb.lint

synth-check: $(STAMP) ## Yosys finds no latch and no loop in the Verilog of tiny, small, edge, base
	$(PY) -W ignore -m tb.synth_check

verilog: $(STAMP) ## Verilog, ports and manifest of CONFIG in build/CONFIG
	$(PY) -W ignore -m sw.cli verilog $(CONFIG) build/$(CONFIG)

bench: $(STAMP) ## utilisation and simulation speed; writes build/bench.json
	$(PY) -W ignore -m tb.bench

fuzz: $(STAMP) ## random programs on RTL and golden model for SECONDS, from SEED; several configurations: FUZZ="tiny drawn:3"
	$(PY) -W ignore -m sw.cli fuzz $(FUZZ:%=--config %) --seconds $(SECONDS) --seed $(SEED)

fpga-report: $(STAMP) ## size and Fmax of the blocks on ECP5 (slow)
	$(PY) -m pip install -q -e '.[fpga]'
	$(PY) -m tb.fpga

clean: ## remove build products (not the virtual environment)
	rm -rf build
