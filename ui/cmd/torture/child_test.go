package torture

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rdma-setup/rdma-setup/ui/cmd"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
)

// childKey is the environment variable that makes this test binary run as the program, with the harm to inject.
const childKey = "RDMA_SETUP_TORTURE"

func TestMain(m *testing.M) {
	if harm, child := os.LookupEnv(childKey); child {
		os.Exit(program(harm))
	}
	code := m.Run()
	if err := left(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// left returns the goroutines that are still running, after waiting for them: a goroutine of a hung call may take a while to notice
// that its command has ended.
func left() (err error) {
	for end := time.Now().Add(time.Minute); ; {
		if err = goleak.Find(); err == nil || time.Now().After(end) {
			return err
		}
	}
}

// program is the real program with harm done to its journal or its clock:
//
//	before|after|torn:TYPE:N   kill -9 before, after or in the middle of the Nth record of a type; TYPE any: of all;
//	                           "outcome ID": of one node
//	full:TYPE:N                the disk is full when that record is written
//	calls:LIMIT                a call of vCenter, and an outage, takes at most this long
//	clock:back                 the clock goes back one minute each time it is read
func program(harm string) int {
	e := console.OSEnv()
	how, what, _ := strings.Cut(harm, ":")
	switch how {
	case "":
	case "calls":
		limit, err := time.ParseDuration(what)
		if err != nil {
			fmt.Fprintln(os.Stderr, "harm", harm, err)
			return 99
		}
		e.CallLimit = limit
	case "clock":
		begun, n := time.Now(), 0
		e.Now = func() time.Time { n++; return begun.Add(-time.Duration(n) * time.Minute) }
	default:
		at := strings.LastIndexByte(what, ':') // ids contain colons too
		kind := what[:max(0, at)]
		n, err := strconv.Atoi(what[at+1:])
		if err != nil {
			fmt.Fprintln(os.Stderr, "harm", harm, err)
			return 99
		}
		e.JournalFile = func(f journal.File) journal.File { return &harmed{File: f, how: how, kind: kind, left: n} }
	}
	return cmd.Run(context.Background(), e, os.Args[1:])
}

// harmed is a journal file that kills the process or returns "disk full" at a given record.
type harmed struct {
	journal.File
	how, kind string
	left      int // records of the kind until then
	full      bool
}

// Write writes one record at a time, so that the process can be killed between two records that are written together.
func (h *harmed) Write(b []byte) (int, error) {
	if h.full {
		return 0, syscall.ENOSPC
	}
	written := 0
	for line := range strings.Lines(string(b)) {
		kind, node, one := strings.Cut(h.kind, " ")
		if kind == "any" || strings.Contains(line, `,"type":"`+kind+`",`) && (!one || strings.Contains(line, `,"node":"`+node+`",`)) {
			h.left--
		}
		part := len(line)
		if h.left == 0 {
			switch h.how {
			case "before":
				die(line)
			case "torn", "full":
				part /= 2
			}
		}
		n, err := h.File.Write([]byte(line[:part]))
		written += n
		if err != nil {
			return written, err
		}
		if h.left == 0 {
			h.left--
			if h.how == "full" {
				h.full = true
				return written, syscall.ENOSPC
			}
			die(line)
		}
	}
	return written, nil
}

// die ends the process as kill -9 does; no more of its code runs. It prints the record at which the process was killed.
func die(line string) {
	var l struct{ Rec struct{ Type, Node string } }
	_ = json.Unmarshal([]byte(line), &l) // only for the message
	fmt.Fprintf(os.Stderr, "killed at %s %s\n", l.Rec.Type, l.Rec.Node)
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
