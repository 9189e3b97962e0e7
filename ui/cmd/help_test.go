package cmd_test

import (
	"slices"
	"strings"
	"testing"

	"charm.land/lipgloss/v2"
	"mvdan.cc/sh/v3/shell"

	"github.com/rdma-setup/rdma-setup/assets"
)

// TestHelpTopics prints every topic at 80 columns, including code blocks.
func TestHelpTopics(t *testing.T) {
	t.Parallel()
	for _, topic := range append(assets.Topics(), "global-flags") {
		title := "# " + assets.TopicTitle(topic) + "\n"
		if topic == "global-flags" {
			title = "Flags of every command\n"
		}
		out, errs, code := inProcess(nil, "help", topic)
		if code != 0 || errs != "" || !strings.HasPrefix(out, title) {
			t.Errorf("help %s: exit %d, %s\n%s", topic, code, errs, out)
		}
		for line := range strings.Lines(out) {
			line = strings.TrimSuffix(line, "\n")
			if w := lipgloss.Width(line); w > 80 {
				t.Errorf("help %s: %d columns: %s", topic, w, line)
			}
			if strings.TrimRight(line, " ") != line {
				t.Errorf("help %s: blanks at the end of %q", topic, line)
			}
		}
	}
}

// TestHelpOfCommands covers cobra's help next to the topics: a command takes precedence, so no topic may have the name of a
// command.
func TestHelpOfCommands(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"check"}, {"lab"}, {"generate", "switch"}, {"completion", "bash"}, {"help"}} {
		got, errs, code := inProcess(nil, append([]string{"help"}, args...)...)
		want, _, _ := inProcess(nil, append(args, "--help")...)
		if code != 0 || errs != "" || got != want || !strings.Contains(got, "rdma-setup "+strings.Join(args, " ")) {
			t.Errorf("help %v: exit %d, %s\n%s\nbut --help prints\n%s", args, code, errs, got, want)
		}
	}
	for _, topic := range assets.Topics() {
		if out, _, _ := inProcess(nil, topic, "--help"); strings.Contains(out, "rdma-setup "+topic) {
			t.Errorf("%s is a topic and a command", topic)
		}
	}
	out, _, code := inProcess(nil, "help")
	if code != 0 || !strings.Contains(out, "Set up:\n  apply") {
		t.Errorf("help: exit %d\n%s", code, out)
	}
	if strings.Contains(out, "--thumbprint") || !strings.Contains(out, "--accessible") || !strings.Contains(out, "\n  global-flags ") {
		t.Errorf("help does not fold the global flags:\n%s", out)
	}
	flags, _, code := inProcess(nil, "help", "global-flags")
	if code != 0 || !strings.Contains(flags, "--thumbprint string") || strings.Contains(flags, "--accessible") {
		t.Errorf("help global-flags: exit %d\n%s", code, flags)
	}
	if plan, _, _ := inProcess(nil, "plan", "--help"); strings.Contains(plan, "--thumbprint") || !strings.Contains(plan, "--limit") ||
		!strings.Contains(plan, "rdma-setup help global-flags") {
		t.Errorf("plan --help:\n%s", plan)
	}
	for _, topic := range assets.Topics() {
		if !strings.Contains(out, "\n  "+topic+" ") {
			t.Errorf("help does not list the topic %s", topic)
		}
	}
	for word, hint := range map[string]string{
		"sriv": "did you mean rdma-setup help sriov?", "chek": "did you mean rdma-setup help check?",
		"global-flag": "did you mean rdma-setup help global-flags?", "xyzzy": "list the commands and topics with: rdma-setup help",
	} {
		if _, errs, code := inProcess(nil, "help", word); code != 2 || !strings.Contains(errs, hint) {
			t.Errorf("help %s: exit %d, %s", word, code, errs)
		}
	}
	if out, _, _ := inProcess(nil, "__complete", "help", "tr"); !strings.Contains(out, "troubleshooting\t") ||
		!strings.Contains(out, "generate\t") {
		t.Errorf("completion of help: %s", out)
	}
}

// TestEveryCommandHasExamples: the help of each command has a paragraph about its purpose, and at least two examples whose flags
// exist.
func TestEveryCommandHasExamples(t *testing.T) {
	t.Parallel()
	var walk func(path []string)
	walk = func(path []string) {
		help, _, code := inProcess(nil, append(slices.Clone(path), "--help")...)
		if code != 0 {
			t.Fatalf("%v --help: exit %d", path, code)
		}
		if long, _, _ := strings.Cut(help, "\n\nUsage:"); strings.Count(long, ".") == 0 || len(long) < 60 {
			t.Errorf("%v: no paragraph: %s", path, long)
		}
		_, list, _ := strings.Cut(help, "\nExamples:\n")
		list, _, _ = strings.Cut(list, "\n\n")
		n := 0
		for line := range strings.Lines(list) {
			words, err := shell.Fields(strings.Split(line, " > ")[0], nil)
			if err != nil || len(words) == 0 || words[0] != "rdma-setup" ||
				!strings.HasPrefix(strings.Join(words[1:], " "), strings.Join(path, " ")) && path[0] != "collect" {
				t.Errorf("%v: %q: %v", path, line, err)
				continue
			}
			n++
			words = slices.DeleteFunc(words[1:], func(w string) bool { return w == "--" })
			succeeds(t, nil, append(words, "--help")...)
		}
		if n < 2 {
			t.Errorf("%v: %d examples", path, n)
		}
		_, commands, _ := strings.Cut(help, "Commands:\n")
		commands, _, _ = strings.Cut(commands, "\n\n")
		for line := range strings.Lines(commands) {
			if f := strings.Fields(line); len(f) > 1 && f[0] != "help" {
				walk(append(slices.Clone(path), f[0]))
			}
		}
	}
	for _, name := range []string{"apply", "attach", "bench", "check", "collect", "deploy", "discover", "generate", "lab", "man", "mmio",
		"parse", "plan",
		"rehearse", "report", "resume", "rollback", "runs", "schema", "version"} {
		walk([]string{name})
	}
}
