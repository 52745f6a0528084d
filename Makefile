# The commands of the README; each calls the real thing.
# SPDX-License-Identifier: Apache-2.0 OR MIT
.PHONY: demo clean-demo test test-long lint bench clean

demo: ## a real Slurm cluster on this machine, benchmarks through sbatch, joules in sacct
	tests/setup demo
	tests/demo

clean-demo: ## stop every process of the demo and remove its state
	tests/demo --clean

test: ## all tests that fit 45 minutes, on clusters of their own
	tests/setup
	tests/all

test-long: ## the tests that take longer than `make test` may
	tests/setup long
	tests/all --long

lint: ## only the checks of layout and style
	tests/setup
	tests/all lint

BENCH = $(sort $(notdir $(shell find tests/bench -maxdepth 1 -type f -perm -u=x)))
bench: ## what Joulemark costs and how exact it is, each of tests/bench once; BENCH="snmp store": only these
	tests/setup
	@missed=; for one in $(BENCH); do \
	    echo "=== $$one"; tests/bench/$$one || test $$? = 77 || missed="$$missed $$one"; \
	done; test -z "$$missed" || { echo "goals not met, or failed:$$missed" >&2; exit 1; }
	tests/bench/regions

clean: ## the test cluster, and what builds left in the checkout
	tests/all --clean
