# rdma-setup: make run opens the wizard on the embedded lab; nothing but Go is needed for run, build, test, lint and bench.
GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
# Without inlining in packages from GitHub, ours among them, the program is 8 % smaller, and a check takes 5 % more CPU.
FLAGS   := -gcflags=github.com/...=-l -ldflags '-s -w -X github.com/rdma-setup/rdma-setup/ui/cmd.version=$(VERSION)'
BIN     := bin/rdma-setup

# Only the race detector (test-full, e2e) needs cgo, and so a C compiler. Tests and lint use the same compiler settings.
export CGO_ENABLED := 0
export GOFLAGS     += -trimpath

.PHONY: run build test test-runs test-rest test-full lint bench bench-large e2e e2e-full torture fuzz pictures dist clean

run: build
	$(BIN) --lab

build:
	@[ -e $(BIN) ] || echo "Building $(BIN) (the first build takes about two minutes)..."
	$(GO) build $(FLAGS) -o $(BIN) .

# What every edit needs: one test of each kind, without the race detector. go vet runs in lint; without the tables for debuggers the
# test programs are linked faster; with GOGC they take a sixth less CPU, and twice the memory. The runs on labs mostly wait.
QUICK := GOGC=400 $(GO) test -short -vet=off -ldflags=-w -timeout 20m
test:
	@$(MAKE) --no-print-directory -j2 test-runs test-rest
test-runs:
	$(QUICK) -parallel 9 ./ui/cmd
test-rest:
	$(QUICK) -parallel 4 $$($(GO) list ./... | grep -v '/ui/cmd$$')

# test-full is what CI runs: all tests, with the race detector where there are goroutines. e2e runs real programs and real kernels, and
# installs packages with apt; e2e-full is the long suite beside e2e and torture. Package backends/testclass says what belongs where.
test-full lint fuzz:
	@.ci/$@
e2e e2e-full: build
	@.ci/$@ $(BIN)

# The benchmarks, then a table that compares measurements with their bounds; counts over their bound fail, times are only reported.
# Each part of the table has its own limit (bench_board_test.go), after which it fails and the next one begins. bench-large has the
# rows of 1,000 hosts and 10,000 VMs too.
bench bench-large: build
	$(GO) test -run '^$$' -bench . -benchmem $(if $(filter bench,$@),-short) ./...
	$(GO) test -c -tags bench -o bin/bounds.test ./ui/cmd
	cd ui/cmd && ../../bin/bounds.test -test.run TestBounds -test.timeout 75m $(if $(filter bench,$@),-test.short)

# Every record of the journal x kill -9, every call and command x every way to fail, 300 kills at random instants (hours; needs ssh).
torture:
	$(GO) test -count=1 -tags torture -timeout 4h -parallel 6 -run TestTorture -v ./ui/cmd/torture

# Pages of the wizard and the top of a report, as PNG and text in bin/pictures; needs tmux, aha and chromium (assets/pictures).
pictures: build
	ui/form/pictures.sh $(BIN) bin/pictures
	ui/render/picture.sh $(BIN) bin/pictures/report.png

# Archives for Linux and macOS, deb, rpm, SBOM and checksums in dist; the same commit produces the same bytes.
dist:
	GO='$(GO)' VERSION='$(VERSION)' assets/dist/dist.sh

clean:
	rm -rf bin dist
