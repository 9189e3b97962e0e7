package cmd

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks/bundle"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
)

// supportFiles are the files of a run that a bug report needs.
var supportFiles = []string{"plan.json", "journal.jsonl", "log.jsonl", "report.json"}

func newSupportCmd(e *console.Env) *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "support [RUN]",
		Short: "Pack a run into an archive for a bug report",
		Long: `support packs the plan, journal, log and report of a run into a tar.gz archive for a bug report, with the versions of
rdma-setup and Go and the settings from the environment. User names and secrets are removed; of secrets, only the names of
their variables are listed. Names of hosts and VMs and addresses are kept: review the archive before you send it. README.txt in
the archive describes each file.

Without RUN it packs the last run that changed something, else the last one if it failed or was interrupted; if there is no run at
all, only versions and settings.

A run with --log-level debug logs every vCenter call and every remote command.`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeRuns(e),
		RunE: console.WithSettings(e, func(cmd *cobra.Command, args []string, set *console.Settings) error {
			s := support{env: e, set: set}
			if _, err := os.Stat(set.StateDir); errors.Is(err, fs.ErrNotExist) && cmd.Flags().Changed("state-dir") {
				return console.Usage("set --state-dir to the directory of the runs", "the state directory %s does not exist", set.StateDir)
			}
			if runs, err := journal.Runs(set.StateDir); err != nil || len(runs) > 0 || len(args) > 0 {
				if s.run, err = chosenRun(e, set, "support", args); err != nil {
					_, fruitless, _ := journal.LastChanged(set.StateDir)
					if s.run = fruitless; len(args) > 0 || fruitless == "" {
						return err
					}
				}
				_, err := journal.ReadFile(set.StateDir, s.run, "journal.jsonl")
				if backends.KindOf(err) == backends.KindUsage {
					return err
				}
				if err != nil {
					return backends.Errorf(backends.KindUsage, "", "list the runs with: rdma-setup runs", "run %s cannot be read: %w", s.run, err)
				}
			}
			return s.write(cmp.Or(out, "rdma-support-"+e.Now().UTC().Format("20060102-150405")+".tar.gz"))
		}),
	}
	c.Flags().StringVar(&out, "out", "", "file to create, which must not exist (default rdma-support-TIME.tar.gz)")
	return c
}

// support is an archive that is being written.
type support struct {
	env   *console.Env
	set   *console.Settings
	run   string // "" if none has changed anything
	names []string
}

// write creates the archive, which only its owner can read; an existing file is never replaced.
func (s *support) write(path string) error {
	if err := console.Replaceable("out", path); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return console.Usage("name another file with --out", "%s exists already", path)
	case err != nil:
		return console.NotWritable(path, err)
	}
	held, err := s.pack(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return errors.Join(backends.Errorf(backends.KindPermanent, "", "check the free space of the file system", "%s cannot be written: %w", path, err), os.Remove(path))
	}
	what := "run " + s.run
	if s.run == "" {
		what = "no run: no run has changed anything"
	}
	fmt.Fprintf(s.env.Stderr, "%s; %s; user names and secrets are removed, other names and addresses are kept\n", what, strings.Join(held, ", "))
	_, err = fmt.Fprintln(s.env.Stdout, path)
	return err
}

// pack writes the archive: README.txt, the files of the run, and the versions and settings of this program.
func (s *support) pack(w io.Writer) (held []string, err error) {
	s.know()
	held, text := []string{"README.txt"}, map[string]string{}
	add := func(name, data string) {
		held = append(held, name)
		text[name] = data
	}
	for _, name := range supportFiles {
		if s.run == "" {
			break
		}
		data, err := journal.ReadFile(s.set.StateDir, s.run, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // an unfinished run has no report
		}
		if err != nil {
			return nil, err
		}
		add(name, s.redacted(string(data)))
	}
	versions, err := json.MarshalIndent(s.versions(), "", "  ")
	if err != nil {
		return nil, err
	}
	add("versions.json", string(versions)+"\n")
	add("environment.txt", s.redacted(console.Environment(s.env)))
	text["README.txt"] = s.redacted(s.readme(held))

	z := gzip.NewWriter(w)
	t := tar.NewWriter(z)
	for _, name := range held {
		h := &tar.Header{Name: "rdma-support/" + name, Mode: 0o600, Size: int64(len(text[name])), ModTime: s.env.Made(), Format: tar.FormatPAX}
		if err = t.WriteHeader(h); err == nil {
			_, err = io.WriteString(t, text[name])
		}
		if err != nil {
			break
		}
	}
	return held, errors.Join(err, t.Close(), z.Close())
}

// know collects the user names to remove, from run and settings.
func (s *support) know() {
	add := func(names ...string) { s.names = append(s.names, names...) }
	add(s.set.Username, s.set.SSHUser, localUser())
	if s.run == "" {
		return
	}
	st, err := journal.Read(s.set.StateDir, s.run)
	if err != nil {
		return // the bug report may be about a damaged journal
	}
	add(st.Header.User)
	if a, err := answers.Load(strings.NewReader(st.Header.Answers), "the journal of "+s.run); err == nil {
		add(a.VCenter.Username, a.ESXi.User)
		for _, v := range a.VMs {
			add(v.Guest.User)
		}
	}
}

// userField matches a user name in JSON, and in the YAML of answers inside a JSON string: there a line ends in \n.
var (
	userField = regexp.MustCompile(`("(?i:user|username|userName)": ?)"(?:[^"\\]|\\.)*"`)
	userLine  = regexp.MustCompile(`((?:\b|\\n)(?:user|username|userName)[:=] ?)(?:\\"[^"\\]*\\"|[^\s,}"\\]+)`)
)

// redacted removes user names and known secrets from the text of a file.
func (s *support) redacted(text string) string {
	for _, secret := range []string{s.set.Password, s.set.ESXiPassword, s.set.GuestPassword, s.set.SudoPassword} {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, bundle.Redacted)
		}
	}
	text = userField.ReplaceAllString(text, `${1}"`+bundle.Redacted+`"`)
	text = userLine.ReplaceAllString(text, `${1}`+bundle.Redacted)
	return bundle.Anonymous(text, s.names...)
}

func (s *support) versions() map[string]any {
	out := map[string]any{"schemaVersion": plain.SchemaVersion, "version": s.env.Version, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
		"made": s.env.Made().UTC().Format(time.RFC3339), "cpus": runtime.NumCPU()}
	if info, ok := debug.ReadBuildInfo(); ok {
		modules := map[string]string{}
		for _, m := range info.Deps {
			modules[m.Path] = m.Version
		}
		out["modules"] = modules
	}
	return out
}
