package session

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// Load reads the answers of -f; with --lab and without -f they are the lab's own.
func Load(e *console.Env, file string, lab *Lab) (*answers.Answers, error) {
	if file == "" {
		if lab == nil {
			return nil, console.Usage("use -f answers.yaml; the wizard writes such a file, and rdma-setup generate answers prints a template",
				"no answers file was given")
		}
		file = lab.answersFile("pvrdma")
	}
	var b []byte
	var err error
	if file == "-" {
		file = "stdin"
		b, err = backends.InputAnswers.Read(e.Stdin, file)
	} else {
		b, err = backends.InputAnswers.ReadFile(file)
	}
	if errors.Is(err, backends.ErrTooLarge) {
		return nil, err
	}
	if err != nil {
		return nil, console.Usage("the wizard writes such a file, and rdma-setup generate answers prints a template", "answers: %v", err)
	}
	return answers.Load(bytes.NewReader(b), file)
}

// Begin loads the answers of -f and opens the session for them.
func Begin(ctx context.Context, e *console.Env, cmd *cobra.Command, file string) (*Session, *answers.Answers, error) {
	set, err := console.ReadSettings(e, cmd)
	if err != nil {
		return nil, nil, err
	}
	if !set.Lab || file != "" {
		a, err := Load(e, file, nil)
		if err != nil {
			return nil, nil, err
		}
		if err := sameVCenter(cmd, set, a); err != nil {
			return nil, nil, err
		}
		s, err := Open(ctx, e, set, a)
		return s, a, err
	}
	s, err := Open(ctx, e, set, nil)
	if err != nil {
		return nil, nil, err
	}
	a, err := Load(e, file, s.Lab)
	if err != nil {
		s.Close()
		return nil, nil, err
	}
	return s, a, nil
}

// sameVCenter refuses if environment and answers name different vCenters.
func sameVCenter(cmd *cobra.Command, set *console.Settings, a *answers.Answers) error {
	if set.URL == "" || a.VCenter.URL == "" || cmd.Flags().Changed("url") || set.Lab {
		return nil
	}
	if HostOf(set.URL) != HostOf(a.VCenter.URL) {
		return console.Usage("select one with --url", "the environment sets vCenter %s, but the answers set %s", HostOf(set.URL),
			HostOf(a.VCenter.URL))
	}
	return nil
}

// Serves refuses answers for another vCenter than that of the session, unless --url says which one is meant.
func (s *Session) Serves(cmd *cobra.Command, a *answers.Answers, file string) error {
	if s.Set.Lab || a.VCenter.URL == "" || cmd.Flags().Changed("url") || HostOf(s.Set.URL) == HostOf(a.VCenter.URL) {
		return nil
	}
	return console.Usage("select one with --url", "%s is for vCenter %s, but the plan would be made with %s",
		file, HostOf(a.VCenter.URL), HostOf(s.Set.URL))
}

// HostOf returns the host and port of a vCenter address in any form.
func HostOf(address string) string {
	if !strings.Contains(address, "://") {
		address = "https://" + address
	}
	u, err := url.Parse(address)
	if err != nil {
		return backends.ShownURL(address)
	}
	if u.Port() == "" {
		return strings.ToLower(u.Hostname()) + ":443"
	}
	return strings.ToLower(u.Host)
}
