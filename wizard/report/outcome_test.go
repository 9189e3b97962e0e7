package report_test

import (
	"encoding/json"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// A found value is stored and read unchanged; an absent value differs from an unreadable one.
func TestOutcomeKeepsWhatWasFound(t *testing.T) {
	absent, text, part := backends.Absent, backends.ValueOf("unknown until x"), backends.Partial("vmk1")
	for name, found := range map[string]*backends.Value{"unread": nil, "absent": &absent, "text": &text, "partial": &part} {
		b, err := json.Marshal(
			report.Outcome{Change: plan.Change{Setting: backends.Setting{Target: backends.HostRef("esx-01"), Kind: backends.KindOption},
				To: backends.Unknown("x")}, State: "failed", Found: found, Err: "no"})
		if err != nil {
			t.Fatal(err)
		}
		var back report.Outcome
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatalf("%s: %s: %v", name, b, err)
		}
		if back.To != backends.Unknown("x") || back.State != "failed" || back.Err != "no" || (back.Found == nil) != (found == nil) ||
			found != nil && *back.Found != *found {
			t.Errorf("%s: %s is read as %+v", name, b, back)
		}
	}
	var back report.Outcome
	if err := json.Unmarshal([]byte(`{"target":"host/esx-01","found":"x","found_state":"perhaps"}`), &back); err == nil {
		t.Errorf("read as %+v", back)
	}
}
