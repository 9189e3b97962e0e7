package fault

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

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
