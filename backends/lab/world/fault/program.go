package fault

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
)

// Run runs a program of a guest or an ESXi host as the rule says. It returns the exit status: failure, if the program is to fail.
// note is called before, unless the rule does nothing to the program; reset powers the machine off and on, nil: it cannot be done.
func (r Rule) Run(ctx context.Context, p *sh.Proc, failure int, run func() int, note func(Rule), reset func()) int {
	drop := func() {
		if p.Session.Drop != nil {
			p.Session.Drop()
		}
	}
	switch {
	case r.Do == DoReset && reset == nil:
		return run()
	case slices.Contains([]string{DoFail, DoNoise, DoHang, DoSlow, DoDrop, DoDropAfter, DoKill, DoReset, DoGarbage}, r.Do):
		note(r)
	}
	switch r.Do {
	case DoFail:
		fmt.Fprintln(p.Stderr, r.Arg)
		return failure
	case DoNoise:
		if _, err := io.Copy(p.Stdout, r.Noise()); err != nil {
			return sh.SIGPIPE.Status() // the reader has closed the pipe
		}
	case DoHang:
		select {
		case <-r.over:
			return sh.SIGTERM.Status()
		case <-ctx.Done():
			return 1
		}
	case DoSlow:
		t := time.NewTimer(r.Wait)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return 1
		}
	case DoDrop:
		drop()
		return 255
	case DoDropAfter:
		status := run()
		drop()
		return status
	case DoKill:
		p.AtStep(r.Step, func() { p.Kill(sh.SIGKILL) })
	case DoReset:
		p.AtStep(r.Step, func() {
			p.Kill(sh.SIGKILL)
			reset()
		})
	case DoGarbage:
		p.Stdout.Write([]byte(Garbage))
		return 0
	}
	return run()
}

// Help returns the keys of a rule, then its actions, each with a description.
func Help() [][2]string {
	return [][2]string{
		{"host=NAME", "calls for this host, by name or pattern (esx-*); default: any host"},
		{"vm=NAME", "calls for this VM, and commands in its guest; a name or a pattern"},
		{"method=NAME", "a vCenter method, with or without the suffix _Task"},
		{"command=TEXT", "a command in a guest or an ESXi shell: the start of the command line, or the name of the program"},
		{"nth=N", "only the Nth matching call, counted from 1; default: every matching call"},
		{"do=" + DoFault + ":NAME", "return this vSphere fault, such as NoPermission"},
		{"do=" + DoSlow + ":D", "wait before continuing, such as 5s"},
		{"do=" + DoDrop, "close the connection before anything is done"},
		{"do=" + DoDropAfter, "do it, then close the connection without a response"},
		{"do=" + DoHang, "never respond; a command ends when the rules are cleared"},
		{"do=" + DoGarbage, "do it, then return an invalid response; a command prints garbage instead of running"},
		{"do=" + DoExpire, "end all sessions of the vCenter first"},
		{"do=" + DoTaskError + ":TEXT", "accept the call; its task ends with this text"},
		{"do=" + DoTaskFault + ":NAME", "accept the call; its task ends with this vSphere fault"},
		{"do=" + DoTaskCancel, "accept the call; its task is cancelled before it takes effect"},
		{"do=" + DoTaskStay, "accept the call; its task does nothing, and ends when the rules are cleared"},
		{"do=" + DoTaskHold, "accept the call; its task does its work when the rules are cleared"},
		{"do=" + DoFail + ":TEXT", "the command ends with status 1 and this text"},
		{"do=" + DoRebootNever, "a reboot of the host, or of the guest of the VM, never ends"},
		{"do=" + DoDisconnect, "when a VM is powered on, only its first adapter connects"},
		{"do=" + DoHTTP + ":N", "return this HTTP status"},
		{"do=" + DoKill + ":N", "the command is killed with SIGKILL at its step N, counted from 1"},
		{"do=" + DoReset + ":N", "the guest loses power at step N of the command, and starts again"},
		{"do=" + DoNoise + ":BYTES", "the command prints this many bytes of hostile text, then does its work"},
	}
}

// hostile is the output of a malicious machine: escape sequences that change the title and clear a terminal, colours that are
// not reset, characters that change the text direction, markup, shell commands, invalid UTF-8 and a zero byte, all without a
// line break.
const hostile = "\x1b]0;owned\x07\x1b[2J\x1b[31m\u202e\u2066$(reboot)`reboot`;reboot <script>alert(1)</script> %n%s \xff\xfe\xc3\x28\x00\r"

var chunk = strings.Repeat(hostile, 500)

// Noise returns the text that a command prints before its own output under a rule with do=noise.
func (f Rule) Noise() io.Reader { return &noise{left: f.Bytes} }

// A noise is a reader that repeats chunk until left bytes are read.
type noise struct {
	left int64
	at   int
}

func (n *noise) Read(p []byte) (int, error) {
	if n.left == 0 {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), n.left)]
	read := copy(p, chunk[n.at:])
	n.at = (n.at + read) % len(chunk)
	n.left -= int64(read)
	return read, nil
}

// size parses a number of bytes: 4096, 64K, 5M, 1G.
func size(text string) (int64, error) {
	digits, unit := text, int64(1)
	for suffix, times := range map[string]int64{"K": 1 << 10, "M": 1 << 20, "G": 1 << 30} {
		if d, ok := strings.CutSuffix(text, suffix); ok {
			digits, unit = d, times
		}
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%q is no size: 4096, 64K, 5M or 1G", text)
	}
	return n * unit, nil
}
