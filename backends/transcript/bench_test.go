package transcript_test

import (
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/backends/transcript"
	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// BenchmarkParse reads long texts of the tools with the longest output. At least 100 MB/s are required.
func BenchmarkParse(b *testing.B) {
	for _, c := range []struct{ tool, fixture string }{
		{"ib_send_bw", "server-all"},
		{"ib_send_lat", "iterations"},
		{"lspci", "vvv-cx6"},
	} {
		b.Run(c.tool, func(b *testing.B) {
			part, err := os.ReadFile("testdata/" + c.tool + "/" + c.fixture + ".txt")
			if err != nil {
				b.Fatal(err)
			}
			if c.tool != "lspci" { // a table continues without repeating its header
				head, rows, _ := strings.Cut(string(part), "#bytes")
				heading, rows, _ := strings.Cut(rows, "\n")
				part = []byte(head + "#bytes" + heading + "\n" + strings.Repeat(rows, 4096))
			}
			text := strings.Repeat(string(part), 1+(4<<20)/len(part))[:4<<20]
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if r, err := transcript.Parse(c.tool, strings.NewReader(text)); err != nil || r.Failed() {
					b.Fatal(err, "the text was not understood")
				}
			}
		})
	}
}

// TestNoise runs every parser on several kinds of noise: 100 MB are read within two seconds of CPU time and 128 MB of memory. With
// the race detector the noise is short; make e2e-full runs it without.
func TestNoise(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random := make([]byte, 1<<20)
	for i := range random {
		random[i] = byte(r.Uint32())
	}
	var words []string // the tools' own, shuffled
	for _, tool := range transcript.Tools() {
		for _, file := range fixtures(t, "testdata/"+tool.ID) {
			words = append(words, strings.Fields(read(t, file))...)
		}
	}
	var shaken strings.Builder
	for range 20_000 {
		shaken.WriteString(words[r.IntN(len(words))] + " \n\t "[r.IntN(3):][:1])
	}
	for _, kind := range []struct {
		name, unit string
		bytes      int64
	}{
		{"random bytes", string(random), 100 << 20},
		{"words", shaken.String(), 2 << 20},
		{"words on one line", strings.ReplaceAll(shaken.String(), "\n", " "), 2 << 20},
		{"short lines", "y\n", 2 << 20},
		{"one line", "word ", 2 << 20},
		{"colons", ": a: 1: [", 2 << 20},
		{"colons without blanks", "a:", 2 << 20},
		{"hexadecimal", "aa:bb:cc:dd:ee:ff", 2 << 20},
		{"empty lines", "\n", 2 << 20},
		{"brackets", "([{<", 2 << 20},
		{"numbers", "1 2 3.50 4.50 5.500000 ", 2 << 20},
	} {
		if testclass.Race || !testclass.All {
			kind.bytes = 32 << 10
		}
		for _, tool := range transcript.Tools() {
			t.Run(kind.name+"/"+tool.ID, func(t *testing.T) {
				r, took := readNoise(t, tool.ID, kind.unit, kind.bytes)
				if took > 2*time.Second {
					t.Errorf("took %v", took)
				}
				if kind.name == "random bytes" && !r.Failed() {
					t.Errorf("understood: %+v", r)
				}
			})
		}
	}
}

func readNoise(t *testing.T, tool, unit string, bytes int64) (transcript.Result, time.Duration) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := cpuTime()
	v, err := transcript.Parse(tool, io.LimitReader(&repeat{unit: unit}, bytes))
	took := cpuTime() - start
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 128<<20 {
		t.Errorf("the heap grew by %d MB", grown>>20)
	}
	if _, err := json.Marshal(v); err != nil {
		t.Fatal(err)
	}
	return v, took
}

// repeat is a reader that repeats one text.
type repeat struct {
	unit string
	at   int
}

func (r *repeat) Read(p []byte) (int, error) {
	n := copy(p, r.unit[r.at:])
	r.at = (r.at + n) % len(r.unit)
	return n, nil
}

func TestInputIsCut(t *testing.T) {
	v, err := transcript.Parse("ip_addr", io.LimitReader(&repeat{unit: "2: eth0: <UP> mtu 1500\n"}, scan.MaxInput/8))
	if err != nil || v.Failed() {
		t.Fatal(err, "the text was not understood")
	}
	v, err = transcript.Parse("lspci", io.LimitReader(&repeat{unit: "vf 0 \n"}, 2*scan.MaxInput))
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(v)
	if err != nil || !strings.Contains(string(data), scan.CodeInputCut) {
		t.Errorf("no warning in %.200s (%v)", data, err)
	}
}

// cpuTime returns the processor time of this process, which does not depend on the load of the machine.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
