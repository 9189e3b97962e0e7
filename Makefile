# rdma-setup: make run opens the wizard on the embedded lab; nothing but Go is needed for run, build, test, lint and bench.
GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X github.com/rdma-setup/rdma-setup/ui/cmd.version=$(VERSION)
BIN     := bin/rdma-setup

# The program, its tests and lint use the same compiler settings, so that each package is compiled once; only the race detector
# needs cgo, and so a C compiler. On a machine without one the tests run without it; CI must have one.
export CGO_ENABLED := 0
export GOFLAGS     += -trimpath
RACEABLE           := $(or $(CI),$(shell command -v "$$($(GO) env CC | cut -d' ' -f1)"))
RACE               := $(if $(RACEABLE),CGO_ENABLED=1 $(GO) test -race,$(GO) test)

.PHONY: run build test test-runs test-others test-packages lint bench e2e e2e-full torture fuzz pictures dist clean

run: build
	$(BIN) --lab

build:
	@[ -e $(BIN) ] || echo "Building $(BIN) (the first build takes about two minutes)..."
	$(GO) build -ldflags '$(LDFLAGS)' -o $(BIN) .

# The race detector runs on the packages. The tests of ui/cmd are complete runs on labs and take four times as long with it, so only
# those with the most concurrent goroutines use it. make e2e-full uses it for all of them.
RACED  := TestWizardOnTheLab|TestNothingIsWrittenIntoTheWizardsScreen|TestReadOnlyReportNeedsOnlyAReadOnlyAccount|
RACED  := ^($(RACED)TestExitCodesOfCheck|TestDeadGuestsCostOneLimit|TestInterruptDuringBackups)$$
SIZED  := ^(TestVMsAreOffInWaves|TestRepliesAreLimited|TestCallsPerHost|TestQuickCheckCostsAFewCallsWhateverTheNumberOfHosts|TestTwinOfAFinishedSite)$$
# Without the tables for debuggers the test programs are linked in two thirds of the time.
GOTEST := $(TESTFLAGS) -vet=off -ldflags=-w
# Packages that start no goroutine have nothing that the race detector could find.
PLAIN  := /(assets|backends/(guest/(netconf|pkgman)|nic|transcript)|ui/(cmd/(generate|twin)|plain|render|theme)|checks/(bundle|catalogue|guest|network|vcenter)
PLAIN  := $(PLAIN)|wizard/(answers|generate|plan|report|sizing))(/|$$)

# Tests of the packages SLOW that draw many screens, count calls, read inventories or endless replies, or use one setter after the
# other, mostly in one goroutine:
# with the race detector they take minutes. make e2e-full uses it for them.
SINGLE := ^(TestEveryKeyOf.*Something|TestGoldenScreens.*|TestEveryPageTakesAnySize|TestTheProposalIsNeverRefused|TestScope|
SINGLE := $(SINGLE)TestModeSRIOVAsksForVFs|TestSession(SRIOV|PVRDMA)|TestCostOf(Reading|Setting.*)|Test.*ContractOnLab|TestVMSettingsOnStock|
SINGLE := $(SINGLE)TestOne(System)?FaultEach|Test(ModulesAtBoot|OtherSettings)HalfDone|TestContracts|TestSetupAndRollback.*|TestPortQoS|
SINGLE := $(SINGLE)TestNouveau|TestBuiltInModules|TestOFEDThatIsNotInstalled|TestPartlyRemoved.*|TestGPUPersistence|TestRepliesWithoutEnd|
SINGLE := $(SINGLE)TestClustersOfTheSameName|TestPlanIsReadToItsEnd|TestRailsAreAdded|TestAnswersAreEdited|
SINGLE := $(SINGLE)TestInputOfTheLastPageIsKept|TestPlainQuestions.*|TestHostsAreShownByNameFirst)$$
SLOW   := ./ui/form ./backends/vsphere ./backends/guest

# go vet runs in lint. TESTFLAGS is for .ci/run. The runs on labs mostly wait, so the packages are compiled and tested beside them. With
# GOGC they take a sixth less CPU, and twice the memory.
test: export GOGC := 400
test:
	@[ -n '$(RACEABLE)' ] || echo "no C compiler, which the race detector needs: the tests run without it" >&2
	@$(MAKE) --no-print-directory -j3 $(if $(TESTFLAGS),-Otarget) test-runs test-others test-packages

test-runs:
	$(GO) test $(GOTEST) -parallel 9 -timeout 30m -skip '$(RACED)' ./ui/cmd

# What runs at the same time as something else is sensitive to load: no more than four at a time.
test-others:
	$(GO) test $(GOTEST) -parallel 4 -timeout 30m ./ui/cmd/torture
	$(GO) test $(GOTEST) -parallel 4 -timeout 30m -run '^TestKilled' ./wizard/engine
	$(GO) test $(GOTEST) -parallel 4 -timeout 30m -run '$(SINGLE)' $(SLOW)
	$(RACE) $(GOTEST) -parallel 4 -timeout 30m -run '$(RACED)' ./ui/cmd

# -short runs the parsers on little noise; make e2e-full on all of it.
test-packages:
	$(GO) test $(GOTEST) -parallel 4 -short -timeout 30m $$($(GO) list ./... | grep -E '$(PLAIN)')
	$(RACE) $(GOTEST) -parallel 4 -timeout 30m -skip '$(SINGLE)' $$($(GO) list ./... | grep -v -e '/ui/cmd$$' -e /torture | grep -vE '$(PLAIN)')

lint:
	@bad=$$(gofmt -l $$(git ls-files --cached --others --exclude-standard '*.go')); \
	if [ -n "$$bad" ]; then echo "gofmt: not formatted:"; echo "$$bad"; exit 1; fi
	@bad=$$(git ls-files '*.go' | grep -v _test.go | xargs awk 'length > 200 { print FILENAME ":" FNR }'); \
	if [ -n "$$bad" ]; then echo "longer than 200 characters:"; echo "$$bad"; exit 1; fi
	$(GO) vet ./...
	$(GO) vet -tags e2e,bench,torture ./ui/... ./backends/guest ./backends/guest/realtest
	$(GO) tool staticcheck ./...
	@dead=$$($(GO) tool deadcode -test -tags e2e,bench,torture ./...) || exit 1; \
	if [ -n "$$dead" ]; then echo "deadcode: nothing calls:"; echo "$$dead"; exit 1; fi
	@# The scripts that run on other machines. Where CI is set, all three are there.
	@for c in 'shellcheck -s sh' 'dash -n' 'busybox ash -n'; do \
		if command -v $${c%% *} >/dev/null 2>&1; then for f in assets/scripts/*.sh assets/templates/*.sh; do $$c $$f || exit 1; done; \
		elif [ -n "$$CI" ]; then echo "$${c%% *}: not installed"; exit 1; else echo "$${c%% *}: not installed, skipped"; fi; \
	done
	$(GO) mod verify
	@# 3 is a finding; anything else is a database that cannot be asked from here.
	@$(GO) tool govulncheck ./... || { rc=$$?; [ $$rc -ne 3 ] || exit 1; echo "govulncheck: not asked (see above)"; }
	$(GO) test -count=1 -run 'TestArrows|TestTopLevel' ./ui/cmd

# The benchmarks, then a table that compares measurements with their bounds; counts over their bound fail, times are only reported.
# Each part of the table has its own limit (bench_board_test.go), after which it fails and the next one begins.
bench: build
	$(GO) test -run '^$$' -bench . -benchmem ./...
	$(GO) test -c -tags bench -o bin/bounds.test ./ui/cmd
	cd ui/cmd && ../../bin/bounds.test -test.run TestBounds -test.timeout 75m

# The real guests take most of the time of make e2e: make e2e-full tests two rails on them.
LONGER := ^TestE2ERails$$

# This test compares durations, which other tests and the race detector would lengthen.
ALONE := ^TestE2ERehearsalForetellsTheRun$$

# Real programs and real kernels: installs the required packages with apt, and keeps the guests' image in the user's cache. Tests
# that mostly wait run in parallel to the guests, and their output is printed at the end.
e2e: build
	backends/guest/realtest/needs.sh $(if $(CI),latest)
	@trap 'kill -- -$$waits -$$computes 2>/dev/null; cat bin/e2e.log; exit 130' INT TERM; \
	setsid env $(RACE) -count=1 -tags e2e -timeout 60m -p 2 -parallel 4 -run 'TestE2E' -skip '$(ALONE)' -v ./ui/cmd ./ui/form ./ui/render ./backends/guest >bin/e2e.log 2>&1 & waits=$$!; \
	setsid env $(RACE) -count=1 -tags e2e -timeout 60m -parallel 3 -run TestE2E -skip '$(LONGER)' -v ./backends/guest/realtest & computes=$$!; \
	wait $$computes; computed=$$?; wait $$waits; waited=$$?; trap - INT TERM; cat bin/e2e.log; exit $$((computed | waited))
	$(GO) test -count=1 -tags e2e -timeout 20m -run '$(ALONE)' -v ./ui/cmd
	@# A sample of make torture, with the ssh of this machine as its witness.
	RDMA_SETUP_TORTURE_KILLS=10 RDMA_SETUP_TORTURE_SEED=20261123 $(GO) test -count=1 -tags torture -timeout 20m -parallel 6 -run TestTortureKills -v ./ui/cmd/torture

# The long suite in addition to e2e and torture: the tests that make test runs with fewer hosts, VMs, rails, systems or answers, in full
# (RDMA_SETUP_TEST_FULL; the packages below ui leave out less without the race detector); complete runs with the race detector;
# third-party clients against the lab (the table is then in bin/foreign); real guests with two rails, loss on the wire between them and
# MPI, kills while they install packages, renew their RAM disk and apply netplan, and the generated scripts for containers and MPI. It
# begins with the build for macOS.
e2e-full: build
	GOOS=darwin $(GO) build -o /dev/null .
	RDMA_SETUP_TEST_FULL=1 $(GO) test -count=1 -vet=off -timeout 40m -run '$(SIZED)' ./ui/cmd
	RDMA_SETUP_TEST_FULL=1 $(RACE) -count=1 -vet=off -parallel 4 -timeout 40m -run '^TestScripts$$/^(sriov-)?releases$$' ./ui/cmd
	$(GO) test -count=1 -vet=off -timeout 40m ./backends/guest ./backends/transcript/...
	RDMA_SETUP_TEST_FULL=1 $(RACE) -count=1 -vet=off -timeout 40m -run '^TestKilled' ./wizard/engine
	$(RACE) -count=1 -vet=off -parallel 4 -timeout 60m -run '$(SINGLE)' $(SLOW)
	$(RACE) -count=1 -vet=off -parallel 4 -timeout 60m -skip '$(RACED)' ./ui/cmd
	RDMA_SETUP_TEST_FULL=1 $(RACE) -count=1 -vet=off -parallel 4 -timeout 60m ./ui/cmd/torture
	backends/lab/foreign.sh $(BIN)
	backends/guest/realtest/needs.sh
	RDMA_SETUP_E2E_FULL=1 $(RACE) -count=1 -tags e2e -timeout 85m -run 'TestE2EGuests|TestE2EPVRDMA|TestE2ERails|TestContainers|TestKilledInstaller' -v ./backends/guest/realtest

# Every record of the journal x kill -9, every call and command x every way to fail, 300 kills at random instants inside commands
# and between them (RDMA_SETUP_TORTURE_SEED, _KILLS, _SCALE); the tables are then in bin/torture. Needs ssh.
torture:
	$(GO) test -count=1 -tags torture -timeout 4h -parallel 6 -run TestTorture -v ./ui/cmd/torture

# Every fuzz target for ten seconds; a minute for those that read answers, journals and the replies of a vCenter.
fuzz:
	@$(GO) test -list '^Fuzz' ./... | awk '/^Fuzz/ { f[n++] = $$1 } $$1 == "ok" { for (i = 0; i < n; i++) print $$2, f[i]; n = 0 }' | \
	while read -r p f; do \
		case $$p/$$f in */wizard/answers/FuzzLoad|*/engine/journal/FuzzParse|*/vsphere/FuzzReplies) t=60s;; *) t=10s;; esac; \
		echo "$$p $$f $$t"; \
		$(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $$t -fuzzminimizetime 10x $$p </dev/null || exit 1; \
	done

# Every page of the wizard as PNG and text, and the top of a report, in bin/pictures; needs tmux, aha and chromium. Those of the
# README are in assets/pictures; moving.sh there makes the animated one, with tmux and python3.
pictures: build
	ui/form/pictures.sh $(BIN) bin/pictures
	ui/render/picture.sh $(BIN) bin/pictures/report.png

# Archives for Linux and macOS, deb, rpm, SBOM and checksums in dist; the same commit produces the same bytes.
dist:
	GO='$(GO)' VERSION='$(VERSION)' assets/dist/dist.sh

clean:
	rm -rf bin dist
