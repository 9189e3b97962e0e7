package scantest

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Noise runs every parser on long texts that make careless parsers slow: random lines, one long line, shuffled words of the
// tool's own fixtures. The limit is far above what a linear parser needs and far below what a quadratic one needs. Short texts
// are for the race detector.
func Noise(t *testing.T, dir string, tools Tools, short bool) {
	const limit = 3 * time.Second // of the processor
	size := 128 << 10
	if short {
		size = 32 << 10
	}
	random := rand.New(rand.NewPCG(1, 2))
	letters := make([]byte, size)
	for i := range letters {
		letters[i] = "abcdefghij 0123456789:.-_/()[]\n\t"[random.IntN(32)]
	}
	for _, tool := range slices.Sorted(maps.Keys(tools)) {
		var words []string
		for _, file := range fixtures(t, dir+"/"+tool) {
			words = append(words, strings.Fields(read(t, file))...)
		}
		if len(words) == 0 {
			t.Errorf("%s has no fixture", tool)
			continue
		}
		var shaken strings.Builder
		for shaken.Len() < size {
			shaken.WriteString(words[random.IntN(len(words))])
			shaken.WriteByte(" \n\t "[random.IntN(4)])
		}
		for kind, text := range map[string]string{
			"letters": string(letters), "shaken": shaken.String(), "one line": strings.ReplaceAll(shaken.String(), "\n", " "),
			"colons": strings.Repeat(": ", size/2), "blank lines": strings.Repeat("\n", size),
			"first words": strings.Repeat(strings.Join(words[:min(len(words), 3)], " ")+"\n", size/64),
		} {
			t.Run(tool+"/"+kind, func(t *testing.T) {
				start := CPUTime()
				tools[tool](text)
				if took := CPUTime() - start; took > limit {
					t.Errorf("%d bytes took %v", len(text), took)
				}
			})
		}
	}
}

// CPUTime returns the processor time of this process, which does not depend on the load of the machine.
func CPUTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
