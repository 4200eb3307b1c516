# Thin: every target is one or two scripts that also run on their own.

.PHONY: help build test demo bench setup

help:
	@echo "make demo [DIR=path]   publish a directory, read it back by name through a second forwarder"
	@echo "make test              everything that CI runs, ending with a summary"
	@echo "make bench             wall time and CPU-seconds beside NDNd and XRootD"
	@echo "make build             target/release/byname"
	@echo "make setup             the system packages that the tests need"

build:
	scripts/setup --for build
	cargo build --release --locked --package byname

test:
	scripts/test

demo:
	scripts/setup --for demo
	scripts/demo $(if $(DIR),"$(DIR)")

bench:
	scripts/setup --for bench
	interop/setup ndnd
	bench/run

setup:
	scripts/setup --for test
