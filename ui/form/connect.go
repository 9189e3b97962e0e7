package form

import (
	"context"
	"errors"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/ui/theme"
)

// connectPage asks for the vCenter and proves that it answers before anybody types a password.
type connectPage struct {
	fields *fields
	asked  live.Login        // as it was when the page was shown
	trust  *live.Fingerprint // a certificate that waits for a word
}

func (p *connectPage) title() string { return "vCenter" }
func (p *connectPage) hints() []hint {
	if p.trust != nil {
		return []hint{{"y", "trust it"}}
	}
	return []hint{{"F2", "only look"}, {"Tab", "next field"}}
}
func (p *connectPage) enterWord() string { return "connect" }
func (p *connectPage) typing() bool      { return p.trust == nil && p.fields.typing() }

func (p *connectPage) enter(w *wizard) tea.Cmd {
	p.trust, p.asked = nil, w.login
	p.fields = newFields(w.theme,
		question{title: "vCenter address", about: "https://vcenter.example/sdk; the scheme and /sdk may be left out", value: &w.login.URL, check: notEmpty("an address")},
		question{title: "Account", about: "a read-only account is enough to look; changes need privileges", value: &w.login.Username, check: notEmpty("an account")},
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
	k, ok := msg.(tea.KeyPressMsg)
	if !ok || p.trust == nil {
		return p.fields.update(msg)
	}
	yes := k.String() == "y"
	if yes {
		w.login.Thumbprint = p.trust.SHA256
	}
	p.trust = nil
	if !yes {
		return nil, true
	}
	cmd, err := p.accept(w)
	w.err = err
	return cmd, true
}

func (p *connectPage) accept(w *wizard) (tea.Cmd, error) {
	w.login.URL, w.login.Username = strings.TrimSpace(w.login.URL), strings.TrimSpace(w.login.Username)
	if err := p.fields.check(); err != nil {
		return nil, err
	}
	if w.login.URL != p.asked.URL {
		w.login.Thumbprint, w.login.Password = "", "" // they belong to the other vCenter
	}
	if w.login.Username != p.asked.Username {
		w.login.Password = ""
	}
	p.asked.URL, p.asked.Username = w.login.URL, w.login.Username
	l := w.login
	return w.do("looking for "+plain.Clean(l.URL), func(ctx context.Context) error { return w.fabric.Reachable(ctx, l) }, func(w *wizard, err error) tea.Cmd {
		switch {
		case errors.As(err, &p.trust):
			return nil
		case err != nil:
			return w.fail(err)
		case w.login.Password == "":
			return w.show(w.at + 1)
		}
		return connect(w)
	}), nil
}

// halves breaks a fingerprint after 16 bytes, so that it can be compared line by line.
func halves(fingerprint string) string {
	if bytes := strings.Split(fingerprint, ":"); len(bytes) == 32 {
		return strings.Join(bytes[:16], ":") + ":\n" + strings.Join(bytes[16:], ":")
	}
	return fingerprint
}

const lead = "Sets up RDMA over Converged Ethernet on a cluster and proves that it works."

// The two ways through the wizard, the one that only reads first.
var ways = [...][2]string{
	{"F2     ", "only look: a report on hosts, pNICs and VMs; writes nothing"},
	{"Enter  ", "set up: step by step; nothing is changed before you accept a plan"},
}

func (p *connectPage) view(w *wizard, width, height int) string {
	if p.trust != nil {
		return theme.Wrap(fmt.Sprintf("%s shows a certificate that this machine does not know.\n\nSHA-256 fingerprint\n%s\n\nCompare it with what the vCenter's owner tells you. y trusts it and pins it in the answers, any other key goes back.",
			plain.Clean(p.trust.Host), w.theme.Accent.Render(halves(plain.Clean(p.trust.SHA256)))), width)
	}
	intro := theme.Wrap(lead, width) + "\n\n"
	for _, way := range ways {
		intro += w.theme.Accent.Render(way[0]) + theme.Wrap(way[1], width-7) + "\n"
	}
	intro += "\n"
	if w.fabric.Simulated() {
		intro += w.theme.Warning.Render(theme.Wrap("This is the embedded lab: a simulated data centre. Try everything, nothing real is touched.", width)) + "\n"
	}
	for _, what := range w.fabric.Insecure() {
		intro += w.theme.Bad.Render(theme.Wrap("INSECURE: "+what, width)) + "\n"
	}
	return intro + "\n" + p.fields.view(width, height-strings.Count(intro, "\n")-1)
}

// passwordPage stands alone so that keys typed ahead can never put a password into a field in clear text.
type passwordPage struct {
	fields *fields
	typed  string
}

func (p *passwordPage) title() string     { return "Password" }
func (p *passwordPage) hints() []hint     { return nil }
func (p *passwordPage) enterWord() string { return "log in" }
func (p *passwordPage) typing() bool      { return true }

func (p *passwordPage) enter(w *wizard) tea.Cmd {
	p.typed = ""
	p.fields = newFields(w.theme, question{title: "Password of " + plain.Clean(w.login.Username),
		about: "kept in memory only: never in the answers, the journal or a log", value: &p.typed, secret: true, check: notEmpty("the password")})
	return p.fields.init()
}

func (p *passwordPage) update(_ *wizard, msg tea.Msg) (tea.Cmd, bool) { return p.fields.update(msg) }

func (p *passwordPage) accept(w *wizard) (tea.Cmd, error) {
	if err := p.fields.check(); err != nil {
		return nil, err
	}
	w.login.Password = p.typed
	return connect(w), nil
}

func (p *passwordPage) view(_ *wizard, width, height int) string { return p.fields.view(width, height) }

// connect logs in, reads the overview and goes to the hosts. A password that is refused is asked for anew.
func connect(w *wizard) tea.Cmd {
	l := w.login
	var inv *backends.Inventory
	return w.do("logging in and reading the inventory", func(ctx context.Context) (err error) {
		inv, err = w.fabric.Connect(ctx, l)
		return err
	}, func(w *wizard, err error) tea.Cmd {
		if err != nil {
			var cmd tea.Cmd
			if backends.KindOf(err) == backends.KindAuth {
				w.login.Password = ""
				cmd = w.show(passwordAt)
			}
			return tea.Batch(cmd, w.fail(err))
		}
		w.overview = inv
		w.answers.VCenter.URL, w.answers.VCenter.Username, w.answers.VCenter.Thumbprint = l.URL, l.Username, l.Thumbprint
		if w.lookOnly {
			return w.look()
		}
		w.answers = w.fabric.Propose(w.answers, w.overview)
		return w.show(passwordAt + 1)
	})
}
