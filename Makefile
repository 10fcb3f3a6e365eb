# Two commands on a fresh machine: `make demo` and `make test`. Everything else is for people who work on Rondo.
.PHONY: demo test check build image cluster-tenant test-cluster cluster bench sanitizers clean deps
.DEFAULT_GOAL := build

# Debian 12's tools; a fresh machine may lack even cmake, so every target installs first (a no-op when all is there).
deps:
	@tools/install-deps

build: deps
	@cmake --preset release >/dev/null
	@cmake --build --preset release

demo: deps
	@cmake --preset release >/dev/null
	@cmake --build --preset release --target rondo
	@build/release/bin/rondo demo

test: build check
	@ctest --preset release

check: deps
	@tools/check

image: deps
	@cmake --preset release >/dev/null
	@cmake --build --preset release --target rondo
	@tools/image --binary build/release/bin/rondo --out build/image/rondo.tar

# A program for pods on the simulated GPU.
cluster-tenant: deps
	@cmake --preset release >/dev/null
	@cmake --build --preset release --target rondo-sim-tenant

# Real Kubernetes on this machine; K8S=1.34 chooses the oldest supported release.
test-cluster: image cluster-tenant
	@tools/install-deps cluster
	@test/cluster/run

cluster: image cluster-tenant
	@tools/install-deps cluster
	@test/cluster/up

bench: deps
	@cmake --preset release >/dev/null
	@cmake --build --preset release --target rondo benchmarks
	@bench/run

# What CI adds to `make test`: ASan+UBSan on all tests, TSan on those with threads, and clang, which builds the product
# and gives each fuzzer a short run.
sanitizers: deps
	@cmake --preset asan >/dev/null && cmake --build --preset asan && ctest --preset asan
	@cmake --preset tsan >/dev/null && cmake --build --preset tsan --target thread_tests && ctest --preset tsan
	@cmake --preset fuzz >/dev/null && cmake --build --preset fuzz --target rondo fuzzers && ctest --preset fuzz

clean:
	rm -rf build
