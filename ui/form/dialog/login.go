package dialog

import (
	"context"
	"errors"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/form/entry"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/ui/theme"
)

// tries is the number of password attempts; vCenter locks an account after five.
const tries = 3

func (q *questions) connect(ctx context.Context) (*backends.Inventory, error) {
	l := q.o.Fabric.Default()
	if v := q.a.VCenter; q.kept && v.URL != "" && v.URL != l.URL {
		l = live.Login{URL: v.URL, Username: v.Username, Thumbprint: v.Thumbprint}
	}
	for _, what := range q.o.Fabric.Insecure() {
		q.say("INSECURE: %s", what)
	}
	given := l
	for _, f := range []struct {
		question string
		good     func(string) error
		into     *string
	}{{"vCenter address", entry.VCenter, &l.URL}, {"Account", entry.NotEmpty("an account"), &l.Username}} {
		err := q.until(f.question, *f.into, func(s string) error {
			if f.into == &l.URL && s == "look" {
				q.lookOnly = true
				return errors.New("read-only report: nothing will be written. Which vCenter?")
			}
			*f.into = s
			return f.good(s)
		})
		if err != nil {
			return nil, err
		}
	}
	l.URL = entry.VCenterURL(l.URL)
	if l.URL != entry.VCenterURL(given.URL) {
		l.Password, l.Thumbprint = "", ""
	}
	if l.Username != given.Username {
		l.Password = ""
	}
	if err := q.reach(ctx, &l); err != nil {
		return nil, err
	}
	for n := 1; ; n++ {
		var err error
		if l.Password == "" {
			if l.Password, err = q.o.Secret("password of " + l.Username); err != nil {
				return nil, err
			}
		}
		inv, err := q.o.Fabric.Connect(ctx, l, nil)
		if err == nil {
			q.login = l
			q.a.VCenter.URL, q.a.VCenter.Username, q.a.VCenter.Thumbprint = l.URL, l.Username, l.Thumbprint
			return inv, nil
		}
		if n == tries || backends.KindOf(err) != backends.KindAuth {
			return nil, err
		}
		q.say("%s", err)
		l.Password = ""
	}
}

// reach tests that the vCenter answers; an unknown certificate is shown and must be confirmed.
func (q *questions) reach(ctx context.Context, l *live.Login) error {
	err := q.o.Fabric.Reachable(ctx, *l)
	unknown, ok := errors.AsType[*live.Fingerprint](err)
	if !ok {
		return err
	}
	word, askErr := q.ask(unknown.Error()+". Trust it? y or n", "n")
	if askErr != nil {
		return askErr
	}
	if !strings.HasPrefix(strings.ToLower(word), "y") {
		return backends.Authf(unknown.Host,
			"compare the fingerprint with the one that the vCenter administrator gives you", "the certificate is not trusted")
	}
	l.Thumbprint = unknown.SHA256
	return nil
}

// look reads, checks and prints the report; nothing is changed.
func (q *questions) look(ctx context.Context) error {
	q.say("reading hosts and VMs and checking them; nothing is written")
	inv, rep, err := q.o.Fabric.Inspect(ctx, q.a)
	if err != nil {
		return err
	}
	q.outcome.Inspected = rep
	q.page(entry.Inspected(theme.Plain(), inv, rep))
	q.say("again: %s", q.o.Fabric.InspectCommand())
	return nil
}

// answer asks a question that comes up while something runs; anything but yes means no.
func (q *questions) answer(_ context.Context, what live.Question) live.Answer {
	switch k := what.Key; {
	case k != nil:
		return live.Answer{Yes: q.trust(*k)}
	case what.Secret != "":
		text, err := q.o.Secret(what.Secret)
		return live.Answer{Text: text, Interrupted: backends.KindOf(err) == backends.KindInterrupted}
	}
	yes, err := q.yesOr(what.Yes, "no")
	return live.Answer{Yes: err == nil && yes, Interrupted: backends.KindOf(err) == backends.KindInterrupted}
}

func (q *questions) trust(k live.HostKey) bool {
	q.say("%s, at %s, shows an SSH host key that this machine does not know: %s %s", k.Who, k.Address,
		k.Type, k.Fingerprint)
	yes, err := q.yesOr("Trust it and keep it in "+k.KeptIn, "no")
	return err == nil && yes
}
