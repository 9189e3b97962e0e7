package form

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/form/entry"
	"github.com/rdma-setup/rdma-setup/ui/form/frame"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// connectPage asks for the vCenter and tests that it answers before a password is typed.
type connectPage struct {
	fields *fields
	asked  live.Login        // as shown by the page
	trust  *live.Fingerprint // a certificate that waits for confirmation
	draft  *answers.Answers  // of an earlier wizard; nil: none, or it was resumed
	kept   time.Time         // when that was

	known map[account]live.Login // what was known when the operator changed the address or the account: who goes back types it once
}

// An account is where a password belongs.
type account struct{ url, user string }

func (p *connectPage) Title() string { return "vCenter" }
func (p *connectPage) Hints() []frame.Hint {
	if p.trust != nil {
		return []frame.Hint{{Key: "y", Does: "trust it"}}
	}
	hints := append([]frame.Hint{{Key: "F2", Does: "report only"}}, p.fields.hints()...)
	if p.draft != nil {
		hints = append(hints, frame.Hint{Key: "F3", Does: "continue"})
	}
	return hints
}
func (p *connectPage) EnterLabel() string {
	if p.trust != nil {
		return "go back"
	}
	return p.fields.enterLabel("connect")
}
func (p *connectPage) Typing() bool { return p.trust == nil && p.fields.Typing() }

func (p *connectPage) Enter(w *frame.Wizard) tea.Cmd {
	p.trust, p.asked = nil, w.Login
	if !w.Begun() {
		p.draft, p.kept = w.Fabric.Draft()
	}
	p.fields = newFields(w.Theme,
		question{Title: "vCenter address", About: "https://vcenter.example/sdk; https:// and /sdk are optional", Value: &w.Login.URL,
			Check: entry.VCenter},
		question{Title: "Account", About: "read-only access is enough for the report; setup needs privileges", Value: &w.Login.Username,
			Check: entry.NotEmpty("an account")},
	)
	return p.fields.Init()
}

func (p *connectPage) Update(w *frame.Wizard, msg tea.Msg) (tea.Cmd, bool) {
	k, ok := msg.(tea.KeyPressMsg)
	if ok && k.String() == "f3" && p.trust == nil && p.draft != nil {
		return p.resume(w), true
	}
	if !ok || p.trust == nil {
		return p.fields.Update(w, msg)
	}
	if key := k.String(); key == "?" || key == "f1" || key == "q" {
		return nil, false
	}
	yes := k.String() == "y"
	if yes {
		w.Login.Thumbprint = p.trust.SHA256
	}
	p.trust = nil
	if !yes {
		return nil, true
	}
	cmd, err := p.Accept(w)
	w.Err = err
	return cmd, true
}

// resume restores the answers of an earlier wizard. The password is prompted for again: it is never saved.
func (p *connectPage) resume(w *frame.Wizard) tea.Cmd {
	w.Answers = p.draft
	if v := p.draft.VCenter; v.URL != "" && v.URL != w.Login.URL {
		w.Login = live.Login{URL: v.URL, Username: v.Username, Thumbprint: v.Thumbprint}
	}
	cmd := p.Enter(w)
	p.draft = nil
	w.Say("The kept answers are loaded. Enter continues.")
	return cmd
}

func (p *connectPage) Accept(w *frame.Wizard) (tea.Cmd, error) {
	if err := p.fields.Check(); err != nil {
		return nil, err
	}
	w.Login.URL = entry.VCenterURL(w.Login.URL)
	was := account{entry.VCenterURL(p.asked.URL), p.asked.Username}
	if is := (account{w.Login.URL, w.Login.Username}); is != was { // password and certificate belong to the other one
		if p.known == nil {
			p.known = map[account]live.Login{}
		}
		p.known[was] = w.Login
		w.Login.Password = p.known[is].Password
		if is.url != was.url {
			w.Login.Thumbprint = p.known[is].Thumbprint
		}
	}
	p.asked.URL, p.asked.Username = w.Login.URL, w.Login.Username
	l := w.Login
	return w.Do("looking for "+l.URL, func(ctx context.Context) error { return w.Fabric.Reachable(ctx, l) },
		func(w *frame.Wizard, err error) tea.Cmd {
			switch {
			case errors.As(err, &p.trust):
				return nil
			case err != nil:
				p.fields.focus(0) // the address
				return w.Fail(err)
			case w.Login.Password == "":
				return w.Next()
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

const lead = "Sets up RDMA over Converged Ethernet on a vSphere cluster and tests it."

// The two ways through the wizard, the read-only one first.
var ways = [...][2]string{
	{"F2     ", "read-only report on hosts, pNICs and VMs; nothing is changed"},
	{"Enter  ", "set up step by step; nothing is changed before you accept the plan"},
}

func (p *connectPage) View(w *frame.Wizard, width, height int) string {
	if trust := backends.Shown(p.trust); trust != nil {
		return theme.Wrap(fmt.Sprintf("%s shows a certificate that this machine does not know.\n\nSHA-256 fingerprint\n%s\n\n"+
			"Compare it with the fingerprint that the vCenter administrator gives you. Press y to trust it and save it in the answers, or Esc "+
			"to go back.",
			trust.Host, w.Theme.Accent.Render(halves(trust.SHA256))), width)
	}
	intro := theme.Wrap(lead, width) + "\n\n"
	for _, way := range ways {
		intro += w.Theme.Accent.Render(way[0]) + theme.Wrap(way[1], width-7) + "\n"
	}
	if p.draft != nil {
		intro += w.Theme.Accent.Render("F3     ") +
			theme.Wrap("continue with the answers that were kept on "+p.kept.Format("2006-01-02 15:04 MST"), width-7) + "\n"
	}
	intro += "\n"
	if w.Fabric.Simulated() {
		intro += w.Theme.Warning.Render(theme.Wrap("This is the embedded lab, a simulated data centre. Try anything: no real system is affected.",
			width)) + "\n"
	}
	for _, what := range backends.Shown(w.Fabric.Insecure()) {
		intro += w.Theme.Bad.Render(theme.Wrap("INSECURE: "+what, width)) + "\n"
	}
	return intro + "\n" + p.fields.View(width, height-strings.Count(intro, "\n")-1)
}

// passwordPage is a separate page, so that keys typed ahead can never put a password into a visible field.
type passwordPage struct {
	*fields
	typed string
}

func (p *passwordPage) Title() string       { return "Password" }
func (p *passwordPage) Hints() []frame.Hint { return nil }
func (p *passwordPage) EnterLabel() string  { return "log in" }

func (p *passwordPage) Enter(w *frame.Wizard) tea.Cmd {
	p.typed = ""
	p.fields = newFields(w.Theme, question{Title: "Password of " + w.Login.Username,
		About: "kept in memory only: never in the answers, the journal or a log", Value: &p.typed, Secret: true,
		Check: entry.NotEmpty("the password")})
	return p.fields.Init()
}

func (p *passwordPage) Accept(w *frame.Wizard) (tea.Cmd, error) {
	if err := p.fields.Check(); err != nil {
		return nil, err
	}
	w.Login.Password = p.typed
	return connect(w), nil
}

func (p *passwordPage) View(_ *frame.Wizard, width, height int) string {
	return p.fields.View(width, height)
}

// connect logs in, reads the overview and goes to the hosts. After a refused password it asks again.
func connect(w *frame.Wizard) tea.Cmd {
	l := w.Login
	return w.Connect(l, func(w *frame.Wizard, err error) tea.Cmd {
		if err != nil {
			var cmd tea.Cmd
			if backends.KindOf(err) == backends.KindAuth {
				w.Login.Password = ""
				cmd = w.Show(frame.PasswordAt)
			}
			return tea.Batch(cmd, w.Fail(err))
		}
		w.Answers.VCenter.URL, w.Answers.VCenter.Username, w.Answers.VCenter.Thumbprint = l.URL, l.Username, l.Thumbprint
		if w.LookOnly {
			return w.Inspect()
		}
		return w.Show(frame.PasswordAt + 1)
	})
}
