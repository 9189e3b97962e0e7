//go:build bench

package cmd_test

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/cmd"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
)

// beginnings measures the size of the binary, and the time until it does something.
func beginnings(ctx context.Context, b *board) {
	s := b.serve("--hosts", "4")
	info, err := os.Stat(s.bin)
	if err != nil {
		b.t.Fatal(err)
	}
	b.count("binary, stripped, bytes", "", int(info.Size()), 48_000_000)
	b.count("shared libraries it needs", "", libraries(b.t, s.bin), 0)
	var firstPage time.Duration
	b.duration("version", "", best(7, func() { s.must(0, "version") }), 80*time.Millisecond)
	b.duration("start to first page", "", best(5, func() { firstPage = s.firstPage(ctx) }), 150*time.Millisecond)
	b.tell("  CPU until then", "", short(firstPage))
	b.duration("lab start", "4 hosts", best(3, func() { b.serve("--hosts", "4") }), time.Second)
}

func libraries(t *testing.T, file string) int {
	f, err := elf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	libs, err := f.ImportedLibraries()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			libs = append(libs, "interpreter")
		}
	}
	return len(libs)
}

// best returns the shortest of n durations, which other processes disturb least.
func best(n int, do func()) time.Duration {
	least := time.Hour
	for range n {
		begin := time.Now()
		do()
		least = min(least, time.Since(begin))
	}
	return least
}

// firstPage starts the wizard on a terminal, waits for its first page, and returns the CPU time used.
func (s *site) firstPage(ctx context.Context) time.Duration {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, s.bin)
	c.Env = append(s.env, "TERM=xterm-256color")
	tty, err := pty.StartWithSize(c, &pty.Winsize{Rows: 40, Cols: 120})
	if err != nil {
		s.t.Fatal(err)
	}
	defer tty.Close()
	var seen strings.Builder
	buf := make([]byte, 4096)
	for !strings.Contains(strings.ToLower(seen.String()), "vcenter") {
		n, err := tty.Read(buf)
		if err != nil {
			s.t.Fatalf("no first page: %v\n%q", err, seen.String())
		}
		seen.Write(buf[:n])
	}
	_ = c.Process.Kill()
	_ = c.Wait()
	return c.ProcessState.UserTime() + c.ProcessState.SystemTime()
}

// growth runs discover on increasing numbers of hosts. Costs that grow faster than the number of hosts show in the last columns.
func growth(ctx context.Context, b *board) {
	var before struct{ per float64 }
	for _, hosts := range sizes() {
		begin := time.Now()
		s := b.serve("--hosts", fmt.Sprint(hosts), "--vms", fmt.Sprint(10*hosts))
		started := time.Since(begin)
		at := fmt.Sprintf("%d hosts, %d VMs", hosts, 10*hosts)
		objects := s.dial(ctx, b.t)
		inv, err := objects.Inventory(ctx, backends.Scope{})
		if err != nil {
			b.t.Fatal(err)
		}
		if len(inv.Hosts) != hosts || len(inv.VMs) != 10*hosts {
			b.t.Fatalf("%d hosts and %d VMs", len(inv.Hosts), len(inv.VMs))
		}
		var named time.Duration
		asked := time.Now()
		first, err := objects.Inventory(ctx, backends.Scope{Names: func(*backends.Inventory) { named = time.Since(asked) }})
		if err != nil {
			b.t.Fatal(err)
		}
		b.duration("names and states of hosts, for the wizard", at, named, time.Second)
		b.count("  SOAP calls more for that", at, first.APICalls-inv.APICalls, 1+11*hosts/1000)
		calls := s.calls()
		c := s.command("discover", "-o", "json")
		out, memory := b.output(c)
		wire := total(s.calls()) - total(calls)
		var doc struct {
			Calls int `json:"api_calls"`
		}
		if err := json.Unmarshal(out, &doc); err != nil || doc.Calls != wire {
			b.t.Errorf("%s: api_calls is %d, the wire has carried %d (%v)", at, doc.Calls, wire, err)
		}
		pages := (11*hosts+10)/500 + 1
		b.count("SOAP calls to discover", at, wire, 10+pages-1)
		if hosts == 1000 {
			b.count("memory, MB RSS", at, memory, 200)
			calls = s.calls()
			usable, peak := s.overview(ctx, b, 10*hosts)
			b.duration("wizard: log-in to hosts page", at, usable, time.Second)
			b.count("  memory when all is read, MB RSS", at, peak, 120)
			b.count("  SOAP calls until then", at, total(s.calls())-total(calls), 10+pages-1+1+11*hosts/1000)
		}
		used := c.ProcessState.UserTime() + c.ProcessState.SystemTime()
		per := float64(used.Microseconds()) / float64(11*hosts)
		if before.per > 0 {
			b.times("CPU an object, against a tenth of the hosts", at, per/before.per, 1.3)
		}
		before.per = per
		b.tell("  CPU; bytes received; lab start", at, fmt.Sprintf("%s; %.1f MB; %s", used.Round(time.Millisecond),
			float64(objects.Cost().Received)/1e6, started.Round(10*time.Millisecond)))
	}
}

// output runs a command and returns its output and the peak of its resident memory in MB, as it was when it printed.
func (b *board) output(c *exec.Cmd) ([]byte, int) {
	b.t.Helper()
	pipe, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	var out bytes.Buffer
	peak := 0
	for err == nil {
		if _, err = io.CopyN(&out, pipe, 32<<10); err == nil {
			peak = max(peak, peakMB(c.Process.Pid))
		}
	}
	if err == io.EOF {
		err = c.Wait()
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return out.Bytes(), peak
}

// peakMB returns VmHWM of proc(5), which covers the program alone; wait4(2) would include the parent from which it was forked. It
// is 0 if the process has ended.
func peakMB(pid int) int {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	var kib int
	_, _ = fmt.Sscan(rest, &kib)
	return kib * 1024 / 1e6
}

// calls returns the number of calls that the lab received, by SOAP method.
func (s *site) calls() map[string]int {
	s.t.Helper()
	res, err := s.httpClient().Get(strings.TrimSuffix(s.value("GOVC_URL"), "/sdk") + "/lab/calls")
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	out := map[string]int{}
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil {
		s.t.Fatal(err)
	}
	return out
}

func total(calls map[string]int) int {
	n := 0
	for _, c := range calls {
		n += c
	}
	return n
}

// reads compares the program's reads with those of a minimal reader, alternately in one process.
func reads(ctx context.Context, b *board) {
	begin := time.Now()
	s := b.serve("--hosts", "500", "--vms", "2000", "--scenario", "done")
	const at = "500 hosts, 2000 VMs"
	b.duration("lab start", at, time.Since(begin), time.Minute)
	ours, bare := s.dial(ctx, b.t), s.reader(ctx, b.t)
	var mine, theirs []time.Duration
	var sizes [2]int64
	for range 3 {
		received := ours.Cost().Received
		began := time.Now()
		if _, err := ours.Inventory(ctx, backends.Scope{}); err != nil {
			b.t.Fatal(err)
		}
		mine = append(mine, time.Since(began))
		sizes[0] = ours.Cost().Received - received

		received = bare.received.Load()
		began = time.Now()
		if n := bare.read(ctx, b.t); n < 2500 {
			b.t.Fatalf("the reader saw %d objects", n)
		}
		theirs = append(theirs, time.Since(began))
		sizes[1] = bare.received.Load() - received
	}
	b.share("bytes received, against a narrow read", at, float64(sizes[0])/float64(sizes[1]), 1.3)
	b.times("wall time, against a bare govmomi reader", at, float64(median(mine))/float64(median(theirs)), 1.3)
	b.tell("  ours; bare", at, fmt.Sprintf("%s; %s; %.1f MB", median(mine).Round(time.Millisecond), median(theirs).Round(time.Millisecond),
		float64(sizes[0])/1e6))

	// The quick check, in this process, compared with the read that it includes.
	read := cpu()
	if _, err := ours.Inventory(ctx, backends.Scope{Details: true}); err != nil {
		b.t.Fatal(err)
	}
	read = cpu() - read
	before := s.calls()
	used := cpu()
	code := cmd.Run(ctx, s.inProcess(), []string{"check", "--quick", "-o", "json"})
	used = cpu() - used
	if code > 2 {
		b.t.Errorf("check --quick exits %d", code)
	}
	pages := 2*(2500+10)/500 + 1
	b.count("SOAP calls of a quick check", at, total(s.calls())-total(before), 15+pages)
	b.times("CPU of a quick check, against its read alone", at, float64(used)/float64(read), 1.5)
}

// inProcess returns the environment of a command that runs in this process and whose output is discarded.
func (s *site) inProcess() *console.Env {
	e := console.OSEnv()
	e.Stdin, e.Stdout, e.Stderr = strings.NewReader(""), io.Discard, io.Discard
	env := map[string]string{}
	for _, kv := range s.env {
		key, value, _ := strings.Cut(kv, "=")
		env[key] = value
	}
	e.Getenv = func(key string) string { return env[key] }
	e.Terminal = func() bool { return false }
	runtime.GC()
	return e
}

func (s *site) httpClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = s.tls()
	return &http.Client{Transport: t}
}
