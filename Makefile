# rdma-setup: make run opens the wizard on the embedded lab; nothing but Go is needed for run, build, test, lint and bench.
GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X github.com/rdma-setup/rdma-setup/ui/cmd.version=$(VERSION)
BIN     := bin/rdma-setup

.PHONY: run build test lint bench e2e pictures clean

run: build
	$(BIN) --lab

build:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN) .

test:
	$(GO) test -race -timeout 9m ./...

lint:
	@bad=$$(gofmt -l $$(git ls-files --cached --others --exclude-standard '*.go')); \
	if [ -n "$$bad" ]; then echo "gofmt: not formatted:"; echo "$$bad"; exit 1; fi
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	$(GO) mod verify
	$(GO) test -count=1 -run 'TestArrows|TestTopLevel' ./ui/cmd

bench: build
	$(GO) test -run '^$$' -bench . -benchmem ./...

e2e: build
	$(GO) test -race -count=1 -tags e2e -timeout 18m -run 'TestE2E' ./ui/cmd ./ui/form

# Every page of the wizard as PNG and text, in bin/pictures; needs tmux, aha and chromium.
pictures: build
	ui/form/pictures.sh $(BIN) bin/pictures

clean:
	rm -rf bin dist
