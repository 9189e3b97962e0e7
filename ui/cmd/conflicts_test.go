package cmd

import (
	"bytes"
	"maps"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/rollback"
)

func TestConflictsAreDecidedTargetByTarget(t *testing.T) {
	guest := func(vm string, kind backends.ErrorKind) plan.Refusal {
		return plan.Refusal{Target: backends.GuestRef(vm), Why: "file /etc/x is now theirs", Kind: kind}
	}
	var said bytes.Buffer
	var asked []string
	e := &console.Env{Stderr: &said, Confirm: func(question string) (bool, error) {
		asked = append(asked, question)
		return strings.HasPrefix(question, "Restore") && strings.HasSuffix(question, "vm-01") ||
			strings.HasPrefix(question, "Keep") && strings.HasSuffix(question, "vm-02"), nil
	}}
	got, err := decide(e, []plan.Refusal{guest("vm-01", backends.KindConflict), guest("vm-02", backends.KindConflict),
		guest("vm-03", backends.KindConflict), guest("vm-02", backends.KindConflict), guest("vm-04", "")})
	want := map[backends.Ref]rollback.OnConflict{backends.GuestRef("vm-01"): rollback.Restore, backends.GuestRef("vm-02"): rollback.Keep}
	if err != nil || !maps.Equal(got, want) || len(asked) != 5 {
		t.Errorf("%v, %v, asked %q", got, err, asked)
	}
	if !strings.Contains(said.String(), "vm-03: file /etc/x is now theirs") || strings.Contains(said.String(), "vm-04") {
		t.Errorf("said %q", said.String())
	}
}
