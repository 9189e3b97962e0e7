package bracket

import (
	"testing"
	"time"
)

// vSphere reports only the time of a boot, which also moves when the host's clock is set (by NTP or by hand).
func TestRebootIsDistinguishedFromAClockChange(t *testing.T) {
	read := time.Date(2026, 11, 20, 18, 0, 0, 0, time.UTC)
	days := read.Add(-9 * 24 * time.Hour)
	before := Boot{Booted: days, Read: read}
	for name, c := range map[string]struct {
		before Boot
		now    time.Time
		away   bool
		want   bool
	}{
		"nothing happened":                     {before, days, false, false},
		"the time wavers":                      {before, days.Add(time.Second), true, false},
		"NTP steps the clock":                  {before, days.Add(40 * time.Second), false, false},
		"the clock is set by a quarter hour":   {before, days.Add(15 * time.Minute), false, false},
		"booted after it was read":             {before, read.Add(3 * time.Minute), false, true},
		"booted, its clock is an hour behind":  {before, read.Add(-57 * time.Minute), false, true},
		"seen away, short after a boot before": {Boot{Booted: read.Add(-5 * time.Minute), Read: read}, read.Add(-2 * time.Minute), true, true},
		"set by NTP right after a boot before": {Boot{Booted: read.Add(-5 * time.Minute), Read: read}, read.Add(-2 * time.Minute), false, false},
		"the journal has no boot time":         {Boot{Read: read}, days, false, false},
		"no boot time, and booted since":       {Boot{Read: read}, read.Add(time.Minute), false, true},
		"no boot time, and seen away":          {Boot{}, days, true, true},
		"vCenter does not tell":                {before, time.Time{}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.before.over(hostState{booted: c.now}, c.away); got != c.want {
				t.Errorf("%v", got)
			}
		})
	}
}
