// Package assets holds the tables and texts that are built into the program: which packages a guest needs, what is
// known of GPUs, the schema of the answers, example answers, and the scripts that run on other machines. It imports nothing of the program.
package assets

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed *.yaml licenses.txt answers.schema.json examples scripts
var files embed.FS

// FS gives everything that is built in.
func FS() fs.FS { return files }

// Schema gives the JSON Schema of the answers as it is kept in the repository; a test of package answers holds it
// against the code.
func Schema() ([]byte, error) { return files.ReadFile("answers.schema.json") }

// Example gives example answers for a mode: pvrdma, sriov, gpudirect.
func Example(mode string) ([]byte, error) {
	b, err := files.ReadFile("examples/answers-" + mode + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("no example for mode %q", mode)
	}
	return b, nil
}

// Script gives a script that runs on another machine, without the lines that hold nothing but a comment. A name that is
// not there is a defect of the program; a test reads all of them.
func Script(name string) string {
	text, err := files.ReadFile("scripts/" + name)
	if err != nil {
		panic(err)
	}
	var b strings.Builder
	for line := range strings.Lines(string(text)) {
		if t := strings.TrimSpace(line); t != "" && !strings.HasPrefix(t, "#") {
			b.WriteString(line)
		}
	}
	return b.String()
}
