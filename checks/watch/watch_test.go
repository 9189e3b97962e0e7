package watch_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/watch"
)

var noon = time.Date(2026, 5, 6, 12, 0, 0, 0, time.UTC)

func finding(id, host string, s checks.Status, quiet bool) checks.Finding {
	return checks.Finding{ID: id, Target: backends.HostRef(host), Status: s, Quiet: quiet, Evidence: host + " " + string(s)}
}

func look(minute int, f ...checks.Finding) watch.Round {
	return watch.Round{At: noon.Add(time.Duration(minute) * time.Minute), Findings: f}
}

func TestChangesBetweenChecks(t *testing.T) {
	const fw, ntp, maint = "HOST-FW-PVRDMA-007", "HOST-NTP-004", "HOST-MAINT-002"
	for name, tt := range map[string]struct {
		before, after []checks.Finding
		want          []string
	}{
		"nothing":                {[]checks.Finding{finding(fw, "a", checks.Pass, false)}, []checks.Finding{finding(fw, "a", checks.Pass, false)}, nil},
		"it broke":               {[]checks.Finding{finding(fw, "a", checks.Pass, false)}, []checks.Finding{finding(fw, "a", checks.Fail, false)}, []string{fw + " a pass fail"}},
		"it was fixed":           {[]checks.Finding{finding(fw, "a", checks.Fail, false)}, []checks.Finding{finding(fw, "a", checks.Pass, false)}, []string{fw + " a fail pass"}},
		"one host of two":        {[]checks.Finding{finding(fw, "a", checks.Pass, false), finding(fw, "b", checks.Pass, false)}, []checks.Finding{finding(fw, "a", checks.Pass, false), finding(fw, "b", checks.Warn, false)}, []string{fw + " b pass warn"}},
		"the row went away":      {[]checks.Finding{finding(ntp, "a", checks.Warn, false)}, nil, []string{ntp + " a warn pass"}},
		"a quiet one is no news": {[]checks.Finding{finding(ntp, "a", checks.Pass, false)}, []checks.Finding{finding(ntp, "a", checks.Unknown, true)}, nil},
		"worst first":            {nil, []checks.Finding{finding(maint, "a", checks.Warn, false), finding(fw, "a", checks.Fail, false)}, []string{fw + " a pass fail", maint + " a pass warn"}},
		"the worst of a target":  {nil, []checks.Finding{finding(fw, "a", checks.Fail, false), finding(fw, "a", checks.Pass, false)}, []string{fw + " a pass fail"}},
	} {
		var h watch.History
		h.Take(look(0, tt.before...))
		if h.Changes != nil {
			t.Errorf("%s: the first look has changes: %v", name, h.Changes)
		}
		h.Take(look(1, tt.after...))
		var got []string
		for _, c := range h.Changes {
			got = append(got, c.ID+" "+c.Target.Name+" "+string(c.From)+" "+string(c.To))
			if c.Better() != (c.To == checks.Pass) {
				t.Errorf("%s: better %t", name, c.Better())
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

func TestUnreachableVCenterKeepsTheLastResult(t *testing.T) {
	var h watch.History
	broken := errors.New("connection refused")
	h.Take(watch.Round{At: noon, Err: broken})
	if h.Last != nil || h.Err == nil {
		t.Fatal("nothing was judged")
	}
	h.Take(look(1, finding("HOST-FW-PVRDMA-007", "a", checks.Pass, false)))
	h.Take(watch.Round{At: noon.Add(2 * time.Minute), Err: broken})
	h.Take(watch.Round{At: noon.Add(3 * time.Minute), Err: broken})
	if h.Last == nil || !h.Since.Equal(noon.Add(2*time.Minute)) || h.Changes != nil {
		t.Errorf("last %v, since %v, changes %v", h.Last, h.Since, h.Changes)
	}
	h.Take(look(4, finding("HOST-FW-PVRDMA-007", "a", checks.Fail, false)))
	want := []checks.Status{watch.Away, checks.Pass, watch.Away, watch.Away, checks.Fail}
	if h.Err != nil || len(h.Changes) != 1 || !slices.Equal(h.Overall(), want) || !slices.Equal(h.Of(checks.InHost), want) {
		t.Errorf("%v %v %v %v", h.Err, h.Changes, h.Overall(), h.Of(checks.InHost))
	}
	for range 1000 {
		h.Take(look(5))
	}
	if n := len(h.Overall()); n > 400 || n != len(h.Of(checks.InVM)) {
		t.Errorf("%d states are kept", n)
	}
}
