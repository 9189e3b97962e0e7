//go:build e2e

package cmd_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// notRun are the documented commands that this test omits, each with its requirement.
var notRun = map[string]string{
	"deploy server.ova": "an appliance",
	"lab --hosts 4":     "a second terminal: this test's own lab is started with these flags",
	"lab --guest-files": "a second terminal: the script guest-files has one",
	"lab --bundle":      "a second terminal: TestTwin and others serve collected sites",
	"D/answers.yaml":    "that lab",
	"--fix":             "findings that can be fixed: TestFix and others have them",
}

// documented returns the commands in the code blocks of a document, in order.
func documented(t *testing.T, path string) []string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(strings.ReplaceAll(string(b), "\\\n", "")) {
		command := regexp.MustCompile(`^ {4,}((?:bin/)?rdma-setup .*)$`).FindStringSubmatch(strings.TrimRight(line, "\n"))
		if command == nil {
			continue
		}
		text, _, _ := strings.Cut(strings.TrimPrefix(command[1], "bin/"), " #")
		out = append(out, strings.TrimSpace(strings.ReplaceAll(text, "[RUN]", "")))
	}
	return out
}

func leftOut(line string) bool {
	for part := range notRun {
		if strings.Contains(line, part) {
			return true
		}
	}
	return false
}

// TestE2EDocumentation runs the commands of README.md in order on a kept lab as if it were a site, and then those of the guides.
// Where the user would type the consent, it passes --yes.
func TestE2EDocumentation(t *testing.T) {
	t.Parallel()
	s := serve(t, "--hosts", "4", "--vms", "4", "--reboot-time", "1s")
	work := t.TempDir()
	put := func(name string) {
		t.Helper()
		b, err := os.ReadFile(s.answers("pvrdma"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(work, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("answers.yaml")
	put("old.yaml")
	s.env = append(s.env, "PATH="+filepath.Dir(s.bin)+":"+os.Getenv("PATH"))
	root := filepath.Join("..", "..")
	guides, err := filepath.Glob(filepath.Join(root, "assets", "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	run := func(doc, line string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "/bin/sh", "-c", line)
		cmd.Dir, cmd.Env = work, s.env
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		err := cmd.Run()
		if strings.HasPrefix(line, "rdma-setup check") && cmd.ProcessState.ExitCode() == 1 {
			err = nil // only warnings, as for monitoring plugins
		}
		if strings.Contains(line, "--scenario broken-") && cmd.ProcessState.ExitCode() == 3 {
			err = nil // the rehearsed site refuses the answers
		}
		if err != nil {
			t.Errorf("%s: %s: %v\n%s", filepath.Base(doc), line, err, tail(out.String()))
		}
		ran++
	}
	for _, doc := range append([]string{filepath.Join(root, "README.md")}, guides...) {
		if filepath.Base(doc) == "cli.md" {
			continue // synopses, generated from the commands themselves
		}
		for _, line := range documented(t, doc) {
			if leftOut(line) {
				continue
			}
			line = strings.ReplaceAll(line, "D/", s.dir+"/")
			for _, asks := range []string{"apply", "resume", "rollback", "bench"} {
				if strings.HasPrefix(line, "rdma-setup "+asks) && !strings.Contains(line, "--yes") {
					line += " --yes"
				}
			}
			run(doc, line)
			if strings.HasSuffix(line, "> answers.yaml") {
				put("answers.yaml") // the values that the operator fills in
			}
		}
		if filepath.Base(doc) == "README.md" {
			run(doc, "rdma-setup apply -f answers.yaml --yes") // the README ends with a rollback; the guides begin with a site that works
		}
	}
	if ran < 25 {
		t.Errorf("only %d commands were found", ran)
	}
}
