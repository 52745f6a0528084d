# The commands of the README; each calls the real thing.
# SPDX-License-Identifier: Apache-2.0 OR MIT
.PHONY: demo clean-demo test lint bench clean

demo: ## a real Slurm cluster on this machine, benchmarks through sbatch, joules in sacct
	tests/setup demo
	tests/demo

clean-demo: ## stop every process of the demo and remove its state
	tests/demo --clean

test: ## all tests, on a cluster of their own
	tests/setup
	tests/all

lint: ## only the checks of layout and style
	tests/setup
	tests/all lint

bench: ## what our plugins and daemon cost
	tests/setup
	tests/bench/launch
	tests/bench/regions

clean: ## the test cluster, and what builds left in the checkout
	tests/all --clean
