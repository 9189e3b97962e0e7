package plan_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// A change that was saved and read again has the same values: a text that says "unknown until" remains a text.
func TestChangeKeepsTheStateOfItsValues(t *testing.T) {
	values := []backends.Value{
		backends.Absent, backends.Unknown("host/esx-01/host-ssh"), backends.ValueOf("unknown until host/esx-01/host-ssh"),
		backends.ValueOf("absent"),
		backends.ValueOf(map[string]string{"$value": "unknown", "until": "x"}), backends.Partial(nil), backends.Partial("vmk1"),
		backends.ValueOf("vmk1"),
	}
	for _, from := range values {
		for _, to := range values {
			c := plan.Change{Setting: backends.Setting{Target: backends.HostRef("esx-01"), Kind: backends.KindOption, Name: "a"}, From: from, To: to,
				Late: from}
			b, err := json.Marshal(c)
			var back plan.Change
			if err == nil {
				err = json.Unmarshal(b, &back)
			}
			if err != nil || back.From != from || back.To != to || back.Late != from {
				t.Errorf("%s -> %s became %s -> %s: %v", from, to, back.From, back.To, err)
			}
		}
	}
}

func TestChangeIsReadableJSON(t *testing.T) {
	b, err := json.Marshal(plan.Change{From: backends.Absent, To: backends.Unknown("host/esx-01/host-ssh")})
	if err != nil || !strings.Contains(string(b), `"from":null,"to":"unknown until host/esx-01/host-ssh","to_state":"unknown",`) {
		t.Errorf("%s: %v", b, err)
	}
	for _, bad := range []string{
		`"from":1,"from_state":"unknown"`, `"to":"vmk1","to_state":"unknown"`, `"to":null,"to_state":"perhaps"`, `"late":{"$value":"?"}`,
	} {
		var c plan.Change
		if err := json.Unmarshal([]byte(`{"target":"host/esx-01",`+bad+"}"), &c); err == nil {
			t.Errorf("%s is read as %s -> %s", bad, c.From, c.To)
		}
	}
	if b, err := json.Marshal(plan.Change{To: backends.ValueOf(func() {})}); err == nil {
		t.Errorf("written as %s", b)
	}
}
