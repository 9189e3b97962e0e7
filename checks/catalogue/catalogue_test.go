package catalogue_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
)

type listed struct {
	modes      string
	quick      bool
	fix        string
	unverified bool
}

// catalogueList is the list of ids with which the catalogue is compared.
func catalogueList(t *testing.T) (ids []string, rows map[string]listed) {
	t.Helper()
	b, err := os.ReadFile("testdata/catalogue.txt")
	if err != nil {
		t.Fatal(err)
	}
	rows = map[string]listed{}
	for line := range strings.Lines(string(b)) {
		w := strings.Fields(line)
		if len(w) == 0 || w[0] == "#" {
			continue
		}
		if len(w) != 5 {
			t.Fatalf("%q has not five words", line)
		}
		ids = append(ids, w[0])
		rows[w[0]] = listed{w[1], w[2] == "quick", w[3], w[4] == "unverified"}
	}
	return ids, rows
}

func TestCatalogueHoldsEveryRowInOrder(t *testing.T) {
	ids, rows := catalogueList(t)
	if len(ids) != 194 {
		t.Fatalf("the list has %d ids", len(ids))
	}
	var have []string
	for _, c := range catalogue.Checks() {
		have = append(have, c.ID)
		want, known := rows[c.ID]
		if !known {
			t.Errorf("%s is in no list", c.ID)
			continue
		}
		var modes []string
		for _, m := range c.Modes {
			modes = append(modes, string(m))
		}
		if got := strings.Join(modes, ","); got != want.modes && (got != "" || want.modes != "all") {
			t.Errorf("%s: modes %q, want %s", c.ID, got, want.modes)
		}
		if c.Quick != want.quick {
			t.Errorf("%s: quick %t", c.ID, c.Quick)
		}
		if string(c.Fix) != want.fix {
			t.Errorf("%s: fix %s, want %s", c.ID, c.Fix, want.fix)
		}
		if c.Unverified != want.unverified {
			t.Errorf("%s: unverified %t", c.ID, c.Unverified)
		}
	}
	if !slices.Equal(have, ids) {
		t.Errorf("the order is another:\n%v\nwant\n%v", have, ids)
	}
}

func TestEveryRowIsComplete(t *testing.T) {
	scopes := map[string]checks.Scope{"VC": checks.VCenter, "CL": checks.Cluster, "HOST": checks.Host, "DVS": checks.Switch,
		"SW": checks.Switch,
		"VM": checks.VM, "GST": checks.Guest, "PAIR": checks.Pair}
	for _, c := range catalogue.Checks() {
		prefix, _, _ := strings.Cut(c.ID, "-")
		if c.Scope != scopes[prefix] {
			t.Errorf("%s: scope %q", c.ID, c.Scope)
		}
		if c.Source == "" || len(c.Source) < 4 {
			t.Errorf("%s: source %q", c.ID, c.Source)
		}
		if strings.Count(c.Criteria, " / ") < 2 {
			t.Errorf("%s: criteria %q do not say pass / warn / fail", c.ID, c.Criteria)
		}
		if !strings.HasSuffix(c.Remedy, ".") || strings.Contains(c.Remedy, ". ") || strings.Contains(c.Remedy, "\n") {
			t.Errorf("%s: remedy %q is not one sentence", c.ID, c.Remedy)
		}
		if (c.Run == nil) == (c.NoChannel == "") {
			t.Errorf("%s has to have either a test or the reason why there is none", c.ID)
		}
		if !slices.Contains(checks.Links(), c.Link) {
			t.Errorf("%s: link %q is not in the chain", c.ID, c.Link)
		}
		if c.HostCall && !c.Quick {
			t.Errorf("%s belongs to the full check anyway", c.ID)
		}
	}
}
