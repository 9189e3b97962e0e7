package answers_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// One name for all, one for each host, and both: hosts that are not listed use the common one.
func TestVMKNicOfEachHost(t *testing.T) {
	for _, tt := range []struct{ text, first, second, json string }{
		{"pvrdma: {vmknic: vmk2}", "vmk2", "vmk2", `"vmk2"`},
		{"qos: {}", "vmk0", "vmk0", `"vmk0"`},
		{"pvrdma: {vmknic: {names: {esx-01: vmk3}}}", "vmk3", "vmk0", `{"name":"vmk0","names":{"esx-01":"vmk3"}}`},
		{"pvrdma: {vmknic: {name: vmk2, names: {esx-01: vmk3}}}", "vmk3", "vmk2", `{"name":"vmk2","names":{"esx-01":"vmk3"}}`},
		{"pvrdma: {vmknic: {names: {esx-01: vmk3}, create: {portgroup: P, network: 10.1.0.0/24, start: 10.1.0.11}}}", "vmk3", "",
			`{"name":"","names":{"esx-01":"vmk3"},"create":{"portgroup":"P","vlan":0,"network":"10.1.0.0/24","start":"10.1.0.11"}}`},
	} {
		a, err := answers.Load(strings.NewReader("mode: pvrdma\n"+tt.text), "test")
		if err != nil {
			t.Fatalf("%s: %v", tt.text, err)
		}
		k := a.PVRDMA.VMKNic
		if k.Of("esx-01") != tt.first || k.Of("esx-02") != tt.second {
			t.Errorf("%s: %s, %s", tt.text, k.Of("esx-01"), k.Of("esx-02"))
		}
		b, err := json.Marshal(k)
		if err != nil || string(b) != tt.json {
			t.Errorf("%s: %s, %v", tt.text, b, err)
		}
		var back answers.VMKNic
		if err := json.Unmarshal(b, &back); err != nil || back.String() != k.String() {
			t.Errorf("%s: read back as %s, %v", tt.text, back, err)
		}
	}
}
