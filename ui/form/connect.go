package form

import (
	"context"
	"errors"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/huh/v2"

	"github.com/rdma-setup/rdma-setup/ui/live"
)

// hostsAt is the page after the login.
const hostsAt = 2

// connectPage asks for the vCenter and proves that it answers before anybody types a password.
type connectPage struct {
	fields *fields
	trust  *live.Fingerprint // a certificate that waits for a word
}

func (p *connectPage) title() string { return "vCenter" }
func (p *connectPage) hints() string {
	if p.trust != nil {
		return "y trust this certificate"
	}
	return "Tab next field"
}
func (p *connectPage) typing() bool { return p.fields.typing() }

func (p *connectPage) enter(w *wizard) tea.Cmd {
	p.trust = nil
	p.fields = newFields(w.theme,
		huh.NewInput().Title("vCenter address").Description("https://vcenter.example/sdk; the scheme and /sdk may be left out").
			Value(&w.login.URL).Validate(notEmpty("an address")),
		huh.NewInput().Title("Account").Description("a read-only account is enough to look").
			Value(&w.login.Username).Validate(notEmpty("an account")),
	)
	return p.fields.init()
}

func notEmpty(what string) func(string) error {
	return func(s string) error {
		if strings.TrimSpace(s) == "" {
			return errors.New("give " + what)
		}
		return nil
	}
}

func (p *connectPage) update(w *wizard, msg tea.Msg) (tea.Cmd, bool) {
	if k, ok := msg.(tea.KeyPressMsg); ok && p.trust != nil {
		if k.String() == "y" {
			w.login.Thumbprint = p.trust.SHA256
			p.trust = nil
			cmd, _ := p.accept(w)
			return cmd, true
		}
		p.trust = nil
		return nil, true
	}
	return p.fields.update(msg)
}

func (p *connectPage) accept(w *wizard) (tea.Cmd, error) {
	if w.login.URL == "" || w.login.Username == "" {
		return nil, errors.New("address and account are both needed")
	}
	l := w.login
	return w.do("looking for "+l.URL, func(ctx context.Context) error {
		err := w.fabric.Reachable(ctx, l)
		var unknown *live.Fingerprint
		if errors.As(err, &unknown) {
			p.trust = unknown
			return nil
		}
		return err
	}, func(w *wizard) tea.Cmd {
		switch {
		case p.trust != nil:
			return nil
		case w.login.Password == "":
			return forward
		}
		return connect(w)
	}), nil
}

func (p *connectPage) view(w *wizard, width, height int) string {
	if p.trust != nil {
		return fmt.Sprintf("%s shows a certificate that this machine does not know.\n\nSHA-256 fingerprint\n  %s\n\nCompare it with what the vCenter's owner tells you. Press y to trust it and pin it in the answers,\nany other key to go back.",
			p.trust.Host, p.trust.SHA256)
	}
	intro := "Set up RDMA over Converged Ethernet on a cluster, step by step. Nothing is changed before you accept a plan.\n"
	if w.fabric.Simulated() {
		intro += w.theme.Warning.Render("This is the embedded lab: a simulated data centre, for trying everything without risk.") + "\n"
	}
	return wrap(intro, width) + "\n" + p.fields.view(width, height-4)
}

// passwordPage stands alone so that keys typed ahead can never put a password into a field in clear text.
type passwordPage struct{ fields *fields }

func (p *passwordPage) title() string { return "Password" }
func (p *passwordPage) hints() string { return "" }
func (p *passwordPage) typing() bool  { return true }

func (p *passwordPage) enter(w *wizard) tea.Cmd {
	w.login.Password = ""
	p.fields = newFields(w.theme, huh.NewInput().Title("Password of "+w.login.Username).EchoMode(huh.EchoModePassword).
		Description("kept in memory only: never in the answers, the journal or a log").Value(&w.login.Password))
	return p.fields.init()
}

func (p *passwordPage) update(_ *wizard, msg tea.Msg) (tea.Cmd, bool) { return p.fields.update(msg) }

func (p *passwordPage) accept(w *wizard) (tea.Cmd, error) {
	if w.login.Password == "" {
		return nil, errors.New("the password is empty")
	}
	return connect(w), nil
}

func (p *passwordPage) view(_ *wizard, width, height int) string { return p.fields.view(width, height) }

// connect logs in, reads the overview and goes to the hosts.
func connect(w *wizard) tea.Cmd {
	l := w.login
	return w.do("logging in and reading the inventory", func(ctx context.Context) error {
		inv, err := w.fabric.Connect(ctx, l)
		if err != nil {
			return err
		}
		w.overview = inv
		return nil
	}, func(w *wizard) tea.Cmd {
		w.answers.VCenter.URL, w.answers.VCenter.Username, w.answers.VCenter.Thumbprint = l.URL, l.Username, l.Thumbprint
		w.answers = w.fabric.Propose(w.answers, w.overview)
		return w.show(hostsAt)
	})
}
