package perftest

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// mpirun runs a test from the first guest. mpirun requests daemons in the others, and they are started here over the existing
// connections.
func (r *Runner) mpirun(ctx context.Context, t team, app Application, test string, m *Measurement) (string, error) {
	first := t.nodes[0]
	words := t.words(app, test)
	m.Command = "mpirun " + strings.Join(words, " ")
	line := scriptLine("mpi-run.sh", append([]string{t.dir, t.bin[first.VM], strconv.Itoa(int(r.limit().Seconds()))}, words...)...)
	running, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	var mu sync.Mutex
	var lost error
	lose := func(err error) { // mpirun would wait for a missing daemon
		mu.Lock()
		defer mu.Unlock()
		if lost == nil && running.Err() == nil {
			lost = err
		}
		stop()
	}
	c := first.command(line)
	c.OnLine = func(line string) {
		asked, ok := strings.CutPrefix(strings.TrimSpace(line), "@launch ")
		if !ok {
			return
		}
		n, line, err := t.daemon(asked)
		if err != nil {
			lose(err)
			return
		}
		wg.Go(func() {
			if err := r.runDaemon(running, n, line); err != nil {
				lose(err)
			}
		})
	}
	out, err := r.Shell.Exec(running, first.VM, c)
	mu.Lock()
	failed := lost
	stop() // a daemon ends with its mpirun; otherwise it is stopped
	mu.Unlock()
	wg.Wait()
	var kept strings.Builder
	for line := range strings.Lines(out.Stdout + "\n" + out.Stderr) {
		if !strings.HasPrefix(line, "@launch ") {
			kept.WriteString(line)
		}
	}
	text := kept.String()
	switch {
	case failed != nil:
		return text, failed
	case err != nil:
		return text, fmt.Errorf("%s: %w", first.VM, err)
	case out.Exit == timedOut:
		return text, hinted{fmt.Errorf("mpirun did not end within %s", r.limit()), "open TCP between all guests on the RDMA network, " +
			app.Network +
			": mpirun and its daemons use ports that the system chooses"}
	case out.Exit != 0:
		err := fmt.Errorf("mpirun ended with status %d: %s", out.Exit, telling(text))
		if !app.NCCL && strings.Contains(strings.ToLower(text), "no components") {
			err = hinted{err,
				"check with ucx_info -d in every guest whether UCX finds the RDMA device, and with ompi_info whether Open MPI supports UCX"}
		}
		return text, err
	}
	return text, nil
}

// Exit statuses of mpi-prepare.sh.
const (
	noMPI      = 41
	noCompiler = 42
)

// hinted is an error with a known remedy.
type hinted struct {
	error
	hint string
}

// telling returns the most informative line of mpirun's output: it draws rules around its help.
func telling(text string) string {
	for line := range strings.Lines(text) {
		l := strings.TrimSpace(line)
		lower := strings.ToLower(l)
		if strings.Contains(lower, "error") || strings.Contains(lower, "fail") || strings.Contains(lower, "no components") ||
			strings.Contains(lower, "not found") {
			return l
		}
	}
	return lastLine(text)
}

// daemon returns the guest of the team and the command line for mpirun's request, "ADDRESS COMMAND": it accepts only mpirun's
// daemon.
func (t team) daemon(asked string) (n Node, line string, err error) {
	address, command, _ := strings.Cut(asked, " ")
	at := slices.IndexFunc(t.nodes, func(n Node) bool { return n.IP == address })
	words, ok := shellWords(command)
	if at < 0 || !ok || len(words) == 0 || path.Base(words[0]) != "orted" && path.Base(words[0]) != "prted" {
		return Node{}, "", fmt.Errorf("mpirun of %s started something other than its daemon: %s", t.nodes[0].VM, shortened(asked))
	}
	n = t.nodes[at]
	line = "PATH=" + quote(t.bin[n.VM]) + ":$PATH; export PATH; exec"
	for _, w := range append([]string{path.Base(words[0])}, words[1:]...) {
		if w != "--daemonize" { // it keeps its connection, and ends with it
			line += " " + quote(w)
		}
	}
	return n, line, nil
}

func (r *Runner) runDaemon(ctx context.Context, n Node, line string) error {
	out, err := r.Shell.Exec(ctx, n.VM, n.command(line))
	if err == nil && out.Exit != 0 {
		err = fmt.Errorf("MPI's daemon ended with status %d: %s", out.Exit, lastLine(out.Stderr))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", n.VM, err)
	}
	return nil
}

func shortened(s string) string {
	if len(s) > 80 {
		return s[:80] + "..."
	}
	return s
}

// shellWords splits a command line in the form that mpirun writes: words, some in double quotes, nothing that a shell would
// expand. ok is false for anything else.
func shellWords(line string) (words []string, ok bool) {
	open, begun := false, false
	var w strings.Builder
	for _, c := range line {
		switch {
		case c == '"':
			open, begun = !open, true
		case open && strings.ContainsRune("$`\\", c), !open && strings.ContainsRune("$`\\'|&;<>()*?#~!{}", c):
			return nil, false
		case !open && (c == ' ' || c == '\t'):
			if begun {
				words = append(words, w.String())
				w.Reset()
				begun = false
			}
		default:
			w.WriteRune(c)
			begun = true
		}
	}
	if begun {
		words = append(words, w.String())
	}
	return words, !open
}
