package cmd

import (
	"reflect"
	"testing"

	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// The journal keeps flag values exactly as given: vCenter allows a comma in a name.
func TestFlagsSurviveTheJournal(t *testing.T) {
	var f planFlags
	c := &cobra.Command{}
	f.add(c)
	if err := c.ParseFlags([]string{"--skip", `"vm/db, old/adapter/RDMA-PG",HOST-FW-PVRDMA-007`, "--limit", `"esx,01"`, "--parallel", "3",
		"--canary=false"}); err != nil {
		t.Fatal(err)
	}
	f.only = []string{"a,b", "c"}
	back, err := recorded(f.record())
	if err != nil {
		t.Fatal(err)
	}
	for name, lists := range map[string][2][]string{"skip": {f.skip, back.skip}, "limit": {f.limit, back.limit},
		"force-nic": {f.forceNIC, back.forceNIC}, "only": {f.only, back.only}} {
		if len(lists[0]) != len(lists[1]) || len(lists[0]) > 0 && !reflect.DeepEqual(lists[0], lists[1]) {
			t.Errorf("%s was %q, is %q", name, lists[0], lists[1])
		}
	}
	var was, is answers.Answers
	was.Run.Reboot.Canary, is.Run.Reboot.Canary = true, true
	f.into(&was)
	back.into(&is)
	if was.Run.Reboot.Canary || is.Run.Reboot.Canary || was.Run.Parallel != 3 || is.Run.Parallel != 3 {
		t.Errorf("the answers become %+v, then %+v", was.Run, is.Run)
	}
	if _, err := recorded(map[string]string{"skip": "a,b"}); err == nil {
		t.Error("a list that is none is accepted")
	}
}
