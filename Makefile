# Thin: every target is one or two scripts that also run on their own.

.PHONY: help build install package check test demo demo-xrootd demo-hadoop bench setup library
.PHONY: demo-mount demo-site install-library java test-peers

help:
	@echo "make demo [DIR=path]   publish a directory, read it back by name through a second forwarder"
	@echo "make demo-xrootd       serve names with a stock xrootd, copy them with xrdcp"
	@echo "make demo-hadoop       a site with hadoop fs and MapReduce, a disk killed meanwhile"
	@echo "make demo-mount        a published tree as a directory of this machine"
	@echo "make demo-site         a site: put, read, rename, a disk that dies and returns"
	@echo "make test              everything that CI runs, ending with a summary"
	@echo "make test-peers        foreign peers alone, and those too large or long for CI"
	@echo "make check             format, clippy, unit tests, tidy: the working loop"
	@echo "make bench             transfers beside NDNd and XRootD, forwarders beside NDNd's"
	@echo "make build             target/release/byname, its symbols in byname.debug beside it"
	@echo "make install           the program, man pages and completions below PREFIX (/usr/local)"
	@echo "make package           a Debian package of that, with units for systemd"
	@echo "make library           target/release/libbyname.so, the C interface"
	@echo "make install-library   puts it with its headers below PREFIX (/usr/local)"
	@echo "make java              target/release/java/byname-hadoop.jar, the file system for Hadoop"
	@echo "make setup             the system packages that the tests need"

build:
	scripts/setup --for build
	scripts/build

install: build
	scripts/install

package: build
	scripts/package

library:
	scripts/setup --for build
	cargo rustc --release --locked --package byname-ffi --crate-type cdylib

install-library:
	scripts/install-library

java:
	scripts/setup --for build
	scripts/setup --for java
	scripts/build-java

check:
	scripts/check

test:
	scripts/test

test-peers:
	scripts/test-peers

demo:
	scripts/setup --for demo
	scripts/demo $(if $(DIR),"$(DIR)")

demo-xrootd:
	scripts/setup --for xrootd
	scripts/demo-xrootd

demo-hadoop:
	scripts/setup --for build
	scripts/setup --for java
	scripts/demo-hadoop $(if $(DIR),"$(DIR)")

demo-mount:
	scripts/setup --for demo
	scripts/demo-mount

demo-site:
	scripts/setup --for demo
	scripts/demo-site

bench:
	scripts/setup --for bench
	interop/setup ndnd || echo "no NDNd: what needs it is left out"
	scripts/build
	cargo build --release --locked --package byname-traffic --example relay --example faults
	cargo build --release --locked --package byname-profile --example ranges
	bench/run
	bench/forwarder --report "bench/reports/$$(date +%F)-forwarder.md"

setup:
	scripts/setup --for test
