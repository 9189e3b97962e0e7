package timing_test

import (
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab/timing"
)

func TestCommand(t *testing.T) {
	real, scaled := timing.Clock{Real: true}, timing.Clock{Real: true, Scale: 0.1}
	for _, tt := range []struct {
		name   string
		clock  timing.Clock
		args   []string
		want   time.Duration
		itself bool
	}{
		{"no time by default", timing.Clock{}, []string{"modprobe", "vmw_pvrdma"}, 0, false},
		{"the base name counts", real, []string{"/sbin/modprobe", "vmw_pvrdma"}, 200 * time.Millisecond, false},
		{"the scale acts", scaled, []string{"modprobe", "vmw_pvrdma"}, 20 * time.Millisecond, false},
		{"the longest row counts", real, []string{"systemctl", "--quiet", "daemon-reload"}, 300 * time.Millisecond, false},
		{"dpkg changes in steps", real, []string{"/usr/bin/dpkg", "--status-fd", "9", "--unpack", "a.deb"}, 0, true},
		{"dpkg answers at once", real, []string{"dpkg", "-l"}, 20 * time.Millisecond, false},
		{"others take no time", real, []string{"cat", "x"}, 0, false},
	} {
		if got, itself := tt.clock.Command(tt.args); got != tt.want || itself != tt.itself {
			t.Errorf("%s: got %v %v, want %v %v", tt.name, got, itself, tt.want, tt.itself)
		}
	}
}

func TestOfSleep(t *testing.T) {
	for _, tt := range []struct {
		clock timing.Clock
		want  time.Duration
	}{
		{timing.Clock{}, time.Second},
		{timing.Clock{Real: true, Scale: 0.1}, time.Second}, // sleep is not a command of the table
		{timing.Clock{SleepScale: 0.2}, 200 * time.Millisecond},
	} {
		if got := tt.clock.OfSleep(time.Second); got != tt.want {
			t.Errorf("%+v: got %v, want %v", tt.clock, got, tt.want)
		}
	}
}
