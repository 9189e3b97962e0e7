package cmd

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/assets"
	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/plain"
)

// releaseNamed returns the release for --for: 9.0, 8.0U3 or "8.0 U3".
func releaseNamed(name string) (assets.Release, error) {
	all, err := assets.Releases()
	if err != nil {
		return assets.Release{}, err
	}
	plainName := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, " ", "")) }
	var names []string
	for _, r := range all {
		if plainName(r.Name) == plainName(name) {
			return r, nil
		}
		names = append(names, r.Name)
	}
	return assets.Release{}, console.Usage("write one of: "+strings.Join(names, ", "), "--for %s: this release is not supported", name)
}

// readyDoc is the JSON of check --for.
type readyDoc struct {
	Status    string           `json:"status"`
	For       string           `json:"for"`
	Results   []checks.Finding `json:"results"`
	Counts    map[string]int   `json:"counts"`
	Simulated bool             `json:"simulated"`
	APICalls  int              `json:"api_calls"`
}

// ready checks the site against a release, with facts that take a few calls to vCenter.
func (f *checkFlags) ready(ctx context.Context, e *console.Env, cmd *cobra.Command) error {
	to, err := releaseNamed(f.release)
	if err != nil {
		return err
	}
	u, err := f.begin(ctx, e, cmd)
	if err != nil {
		return err
	}
	defer u.s.Close()
	f.sel.Quick = true
	inv, err := u.world(ctx)
	if err != nil {
		return err
	}
	if err := knownLimit(inv, f.limit); err != nil {
		return err
	}
	a, inv := limited(u.a, inv, f.limit)
	u.s.AskVersions(ctx, a, inv)
	found := catalogue.Ready(ctx, u.s.Facts(ctx, a, inv, false), to)
	code, word := judged(found, nil)
	doc := readyDoc{Status: word, For: to.Name, Results: found, Counts: map[string]int{}, Simulated: inv.VCenter.Simulated, APICalls: u.s.VC.Calls()}
	for status, n := range plain.Count(found) {
		doc.Counts[string(status)] = n
	}
	if err := console.RenderTo(e, f.out, func(w io.Writer) error {
		if f.output == "json" {
			return plain.WriteJSON(w, doc)
		}
		return doc.text(w)
	}); err != nil {
		return err
	}
	return console.Exit(code)
}

// text lists what to do, in order: blockers and warnings, each with its targets.
func (d readyDoc) text(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "readiness for %s: %d ready, %s, %s, %d unknown\n", d.For,
		d.Counts[string(checks.Pass)], plain.Counted(d.Counts[string(checks.Warn)], "warning"), plain.Counted(d.Counts[string(checks.Fail)], "blocker"), d.Counts[string(checks.Unknown)])
	if d.Simulated {
		b.WriteString("SIMULATED: checked on the embedded lab; it says nothing about real hardware\n")
	}
	step, last := 0, ""
	for _, f := range d.Results {
		if f.Status == checks.Pass || f.NotAsked() {
			continue
		}
		if f.ID != last {
			step, last = step+1, f.ID
			fmt.Fprintf(&b, "\n%d. %s (%s)\n   source: %s\n", step, f.Remedy, f.ID, f.Source)
		}
		fmt.Fprintf(&b, "   %-7s %s: %s\n", f.Status, backends.Clean(f.Target.Name), backends.Clean(f.Evidence))
	}
	if step == 0 {
		b.WriteString("No preparation is needed.\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
