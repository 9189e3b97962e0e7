package console_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
)

// A place sets a value: "--flag", "VARIABLE" or "key:" of the settings file.
type place struct{ name, value, means string }

// rank orders places: flags over this program's variables over govc's over the settings file.
func (p place) rank() int {
	switch {
	case strings.HasPrefix(p.name, "--"):
		return 4
	case strings.HasPrefix(p.name, "RDMA_SETUP_"):
		return 3
	case strings.HasSuffix(p.name, ":"):
		return 1
	}
	return 2
}

// settings reads the settings as they are with all these places set. Stdin is "of stdin".
func settings(t *testing.T, dir string, places []place) (*console.Settings, *console.Env, error) {
	t.Helper()
	vars, args, conf := map[string]string{"HOME": dir}, []string{"--config", filepath.Join(dir, "config.yaml")}, "{}\n"
	for _, p := range places {
		switch p.rank() {
		case 4:
			args = append(args, p.name+"="+p.value)
		case 1:
			conf += fmt.Sprintf("%s %q\n", p.name, p.value)
		default:
			vars[p.name] = p.value
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(strings.TrimPrefix(conf, map[bool]string{true: "{}\n"}[len(conf) > 3])),
		0o600); err != nil {
		t.Fatal(err)
	}
	e := &console.Env{Terminal: func() bool { return false }, Getenv: func(name string) string { return vars[name] },
		Stdin: strings.NewReader("of stdin\n")}
	c := &cobra.Command{}
	console.AddSettings(c.Flags())
	testclass.OK(t, c.ParseFlags(args))
	s, err := console.ReadSettings(e, c)
	return s, e, err
}

// TestSourcesOfSettings sets every setting in every combination of its places, and wants the value of the one with the highest
// rank. Two places of one rank that set the same secret are an error.
func TestSourcesOfSettings(t *testing.T) {
	dir := t.TempDir()
	holds := func(text string) string {
		file := filepath.Join(dir, text)
		testclass.Write(t, file, text+"\nsecond line\n")
		return file
	}
	// usual returns the places of a setting with a flag and these variables.
	usual := func(key string, variables ...string) []place {
		out := []place{{"--" + key, "flag", "flag"}, {key + ":", "file", "file"}}
		for _, v := range variables {
			out = append(out, place{v, v, v})
		}
		return out
	}
	with := func(places []place, values ...string) []place { // the values of places, in their order
		for i := range places {
			places[i].value, places[i].means = values[i], values[i]
		}
		return places
	}
	command := func(key, variable string) []place {
		return []place{{"--" + key + "-command", "cat '" + holds(key+" of flag command") + "'", key + " of flag command"},
			{variable, "env", "env"},
			{variable + "_COMMAND", `cat "` + holds(key+" of env command") + `"`, key + " of env command"},
			{key + "-command:", "cat '" + holds(key+" of file command") + "'", key + " of file command"}}
	}
	secret := func(of func(*console.Settings) *console.Secret) func(*console.Settings, *console.Env) (string, error) {
		return func(s *console.Settings, e *console.Env) (string, error) {
			err := of(s).Read(context.Background(), e)
			return of(s).Text, err
		}
	}
	text := func(of func(*console.Settings) any) func(*console.Settings, *console.Env) (string, error) {
		return func(s *console.Settings, _ *console.Env) (string, error) { return fmt.Sprint(of(s)), nil }
	}
	rows := []struct {
		otherwise string // the default
		get       func(*console.Settings, *console.Env) (string, error)
		places    []place
	}{
		{"", text(func(s *console.Settings) any { return s.URL }), usual("url", "RDMA_SETUP_URL", "GOVC_URL")},
		{"", text(func(s *console.Settings) any { return s.Username }), usual("username", "RDMA_SETUP_USERNAME", "GOVC_USERNAME")},
		{"", text(func(s *console.Settings) any { return s.Thumbprint }), usual("thumbprint", "RDMA_SETUP_THUMBPRINT")},
		{"", text(func(s *console.Settings) any { return s.CACerts }), usual("ca-certs", "RDMA_SETUP_TLS_CA_CERTS", "GOVC_TLS_CA_CERTS")},
		{"false", text(func(s *console.Settings) any { return s.Insecure }), with(usual("insecure", "RDMA_SETUP_INSECURE", "GOVC_INSECURE"),
			"false", "true", "false", "true")},
		{"", text(func(s *console.Settings) any { return s.SSHUser }), usual("ssh-user", "RDMA_SETUP_SSH_USER")},
		{"", text(func(s *console.Settings) any { return s.SSHKey }), usual("ssh-key", "RDMA_SETUP_SSH_KEY")},
		{"", text(func(s *console.Settings) any { return s.KnownHosts }), usual("known-hosts", "RDMA_SETUP_KNOWN_HOSTS")},
		{"", text(func(s *console.Settings) any { return s.Jump }), usual("jump", "RDMA_SETUP_JUMP")},
		{"false", text(func(s *console.Settings) any { return s.WeakSSH }), with(usual("ssh-weak", "RDMA_SETUP_SSH_WEAK"), "false", "true",
			"true")},
		{"", text(func(s *console.Settings) any { return s.ESXiPasswords }), usual("esxi-passwords", "RDMA_SETUP_ESXI_PASSWORDS")},
		{filepath.Join(dir, ".local", "state", "rdma-setup"), text(func(s *console.Settings) any { return s.StateDir }),
			usual("state-dir", "RDMA_SETUP_STATE_DIR")},
		{"info", text(func(s *console.Settings) any { return s.LogLevel }), with(usual("log-level", "RDMA_SETUP_LOG_LEVEL"), "debug", "warn",
			"error")},
		{"40s", text(func(s *console.Settings) any { return s.GuestTimeout }), with(usual("guest-timeout", "RDMA_SETUP_GUEST_TIMEOUT"), "1s",
			"2s", "3s")},
		{"30s", text(func(s *console.Settings) any { return s.HostTimeout }), with(usual("host-timeout", "RDMA_SETUP_HOST_TIMEOUT"), "1s", "2s",
			"3s")},
		{"", text(func(s *console.Settings) any { return s.Trace }), usual("trace")},
		{"false", text(func(s *console.Settings) any { return s.Verbose }), with(usual("verbose"), "false", "true")},
		{"false", text(func(s *console.Settings) any { return s.Lab }), with(usual("lab"), "false", "true")},
		{"", secret(func(s *console.Settings) *console.Secret { return &s.Password }), append(command("password", "RDMA_SETUP_PASSWORD"),
			place{"GOVC_PASSWORD", "govc", "govc"}, place{"--password-file", holds("of flag file"), "of flag file"},
			place{"--password-stdin", "true", "of stdin"},
			place{"password-file:", holds("of file file"), "of file file"})},
		{"", secret(func(s *console.Settings) *console.Secret { return &s.ESXiPassword }), command("esxi-password", "RDMA_SETUP_ESXI_PASSWORD")},
		{"", secret(func(s *console.Settings) *console.Secret { return &s.GuestPassword }),
			command("guest-password", "RDMA_SETUP_GUEST_PASSWORD")},
		{"", secret(func(s *console.Settings) *console.Secret { return &s.SudoPassword }), command("sudo-password", "RDMA_SETUP_SUDO_PASSWORD")},
	}
	// no place but the flag, or read elsewhere
	tested := map[string]bool{"config": true, "no-pager": true, "command-times": true, "clock-scale": true, "guest-files": true}
	for _, row := range rows {
		for set := range 1 << len(row.places) {
			var places []place
			best, twice := place{value: "default", means: row.otherwise}, false
			for i, p := range row.places {
				if strings.HasPrefix(p.name, "--") {
					tested[p.name[2:]] = true
				}
				if set&(1<<i) == 0 {
					continue
				}
				places = append(places, p)
				switch {
				case best.name == "" || p.rank() > best.rank():
					best, twice = p, false
				case p.rank() == best.rank():
					twice = true
				}
			}
			s, e, err := settings(t, dir, places)
			if twice {
				if err == nil || !strings.Contains(err.Error(), "both set the same password") {
					t.Errorf("%v: %v", places, err)
				}
				continue
			}
			got := ""
			if err == nil {
				got, err = row.get(s, e)
			}
			if err != nil || got != best.means {
				t.Errorf("%v: %q, %v; want %q", places, got, err, best.means)
			}
		}
	}
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	console.AddSettings(all)
	all.VisitAll(func(f *pflag.Flag) {
		if !tested[f.Name] {
			t.Errorf("--%s is not in the table", f.Name)
		}
	})
}

// TestSourcesOfOneSecret sets a file with passwords by host beside one password for all hosts, in every pair of places: the higher
// rank wins, and the file if both have the same.
func TestSourcesOfOneSecret(t *testing.T) {
	dir := t.TempDir()
	for _, byHost := range []place{{"--esxi-passwords", "by host", ""}, {"RDMA_SETUP_ESXI_PASSWORDS", "by host", ""},
		{"esxi-passwords:", "by host", ""}} {
		for _, common := range []place{{"--esxi-password-command", "echo common", ""}, {"RDMA_SETUP_ESXI_PASSWORD", "common", ""},
			{"RDMA_SETUP_ESXI_PASSWORD_COMMAND", "echo common", ""}, {"esxi-password-command:", "echo common", ""}} {
			s, e, err := settings(t, dir, []place{byHost, common})
			if err == nil {
				err = s.ESXiPassword.Read(t.Context(), e)
			}
			want := map[bool]string{true: "by host"}[byHost.rank() >= common.rank()]
			if err != nil || s.ESXiPasswords != want || s.ESXiPassword.Text != "common" {
				t.Errorf("%s, %s: the file is %q, want %q; %v", byHost.name, common.name, s.ESXiPasswords, want, err)
			}
		}
	}
}

// TestSourceThatCannotBeUsed: what is named and cannot be used is an error that names it; nothing else takes its place.
func TestSourceThatCannotBeUsed(t *testing.T) {
	dir := t.TempDir()
	none, empty, shared := filepath.Join(dir, "none"), filepath.Join(dir, "empty"), filepath.Join(dir, "shared")
	for file, mode := range map[string]os.FileMode{empty: 0o600, shared: 0o644} {
		testclass.OK(t, os.WriteFile(file, nil, mode))
	}
	for _, row := range []struct {
		place place
		says  []string
	}{
		{place{"--ssh-key", none, ""}, []string{"--ssh-key", none}},
		{place{"RDMA_SETUP_SSH_KEY", none, ""}, []string{"RDMA_SETUP_SSH_KEY", none}},
		{place{"ssh-key:", none, ""}, []string{"ssh-key in ", "config.yaml", none}},
		{place{"--ssh-key", dir, ""}, []string{"--ssh-key", "is a directory"}},
		{place{"--ssh-key", shared, ""}, []string{shared}},
		{place{"--known-hosts", none, ""}, []string{"--known-hosts", none}},
		{place{"GOVC_TLS_CA_CERTS", empty + ":" + none, ""}, []string{"GOVC_TLS_CA_CERTS", none}},
		{place{"--esxi-passwords", none, ""}, []string{"--esxi-passwords", none}},
		{place{"--password-file", none, ""}, []string{"--password-file", none}},
		{place{"--password-file", shared, ""}, []string{shared}},
		{place{"--password-file", empty, ""}, []string{"--password-file", "empty"}},
		{place{"--password-file", "", ""}, []string{"--password-file is empty"}},
		{place{"password-file:", none, ""}, []string{"password-file in ", none}},
		{place{"--password-command", none + " geheim", ""}, []string{"--password-command", none}},
		{place{"--password-command", "cat " + none, ""}, []string{"--password-command: cat: exit status 1", "No such file"}},
		{place{"--password-command", "cat 'x", ""}, []string{"--password-command", "is not closed"}},
		{place{"--password-command", "true", ""}, []string{"--password-command", "empty"}},
		{place{"RDMA_SETUP_PASSWORD_COMMAND", "false", ""}, []string{"RDMA_SETUP_PASSWORD_COMMAND: false"}},
		{place{"RDMA_SETUP_SSH_WEAK", "maybe", ""}, []string{"RDMA_SETUP_SSH_WEAK", "maybe"}},
		{place{"--log-level", "loud", ""}, []string{"loud"}},
		{place{"RDMA_SETUP_GUEST_TIMEOUT", "soon", ""}, []string{"guest-timeout", "soon"}},
	} {
		places := []place{row.place}
		if row.place.rank() > 2 {
			places = append(places, place{"GOVC_PASSWORD", "stale", ""})
		}
		s, e, err := settings(t, dir, places)
		if err == nil {
			err = s.Usable(e)
		}
		if err == nil {
			err = s.Password.Read(t.Context(), e)
		}
		for _, want := range row.says {
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "geheim") {
				t.Errorf("%v: %v, want %q", row.place, err, want)
			}
		}
	}
}

// TestPasswordCommandIsBounded: a command that does not end is ended with its context, also if a child of it keeps its output open.
func TestPasswordCommandIsBounded(t *testing.T) {
	begun := filepath.Join(t.TempDir(), "begun")
	s, e, err := settings(t, t.TempDir(),
		[]place{{"--password-command", `sh -c "trap true TERM INT; mkdir ` + begun + ` && { sleep 600 & wait; }; echo second"`, ""}})
	testclass.OK(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := s.Password.Read(ctx, e); !errors.Is(err, context.DeadlineExceeded) || s.Password.Text != "" {
		t.Errorf("%q, %v", s.Password.Text, err)
	}
	if err := s.Password.Read(t.Context(), e); err != nil || s.Password.Text != "second" {
		t.Errorf("the next one that needs the password gets %q, %v", s.Password.Text, err)
	}
}

// TestPasswordCommandMayStartAnAgent: a password that was printed counts, also if a process stays and keeps the output open.
func TestPasswordCommandMayStartAnAgent(t *testing.T) {
	s, e, err := settings(t, t.TempDir(), []place{{"--password-command", `sh -c "echo first; sleep 30 &"`, ""}})
	if err == nil {
		err = s.Password.Read(t.Context(), e)
	}
	if err != nil || s.Password.Text != "first" {
		t.Errorf("%q, %v", s.Password.Text, err)
	}
}
