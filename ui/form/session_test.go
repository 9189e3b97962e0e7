package form

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/engine"
)

// Key sequences as a terminal sends them.
const (
	keyEsc, keyDown, keyTab, keyBack, keyF2 = "\x1b", "\x1b[B", "\t", "\x7f", "\x1bOQ"
)

// steps waits for each text and then presses its keys.
func (s *session) steps(list ...[2]string) {
	s.t.Helper()
	for _, step := range list {
		s.shows(step[0])
		s.press(step[1])
	}
}

// stopped waits for the run, shrinks the screen in the middle of it, and stops it with the keyboard.
func (s *session) stopped(b *busy) {
	s.t.Helper()
	<-b.began
	s.resize(80, 24)
	s.shows("of 4 steps")
	s.resize(40, 10)
	s.shows("needs 80x24")
	s.resize(120, 40)
	s.shows("of 4 steps")
	s.press("\x03")
	s.shows("Ctrl-C again stops at once")
	close(b.finish)
	s.steps([2]string{"rdma-setup resume run", "\r"})
	s.end()
	if s.err != nil || s.out.Result.Status != engine.StatusInterrupted || s.out.Report == nil || s.out.Path == "" {
		s.t.Errorf("%v, %+v, report %t, answers %q", s.err, s.out.Result, s.out.Report != nil, s.out.Path)
	}
}

// A whole session with the keyboard: a check first, back and forth with the input kept, other screen sizes, a stop.
func TestSessionPVRDMA(t *testing.T) {
	testclass.Plain(t)
	synctest.Test(t, func(t *testing.T) {
		b := &busy{hosts: 4}
		s := open(t, b)
		s.steps([2]string{"vCenter address", keyF2}, [2]string{"Password of", "right\r"}, [2]string{"Next steps", "\r"},
			[2]string{"Which hosts", "\r"}, [2]string{"How should", "\r"}, [2]string{"Which pNIC", "\r"})
		s.shows("vmknic for PVRDMA")
		s.press("-two" + keyTab + "-two")
		s.press(keyEsc)
		s.steps([2]string{"Which pNIC", keyEsc})
		s.shows("How should")
		s.resize(80, 24)
		s.steps([2]string{"How should", "\r"}, [2]string{"Which pNIC", "\r"})
		s.shows("> RDMA-PG-two")
		s.resize(120, 40)
		s.steps([2]string{"> RDMA-DVS-two", "\r\r\r\r\r"}, [2]string{"Which VMs", "\r"}, [2]string{"prevents the setup", "\r"},
			[2]string{"Enter to apply this plan", "\r"})
		s.stopped(b)
		if a := s.out.Answers; a.Mode != answers.PVRDMA || a.Switch.Name != "RDMA-DVS-two" || a.Switch.PortGroup != "RDMA-PG-two" ||
			b.looks != 1 {
			t.Errorf("%s, %+v, %d looks", a.Mode, a.Switch, b.looks)
		}
	})
}

func TestSessionSRIOV(t *testing.T) {
	testclass.Plain(t)
	synctest.Test(t, func(t *testing.T) {
		b := &busy{hosts: 4}
		s := open(t, b)
		s.steps([2]string{"vCenter address", "\r\r"}, [2]string{"Password of", "right\r"}, [2]string{"Which hosts", "\r"},
			[2]string{"How should", keyDown + "\r"}, [2]string{"Which pNIC", "\r"})
		s.shows("Account of the ESXi shell")
		s.press("\r\r\r\r" + keyBack + "900\r")
		s.shows("900 is not between 1 and 127")
		s.press(keyBack + keyBack + keyBack + "12" + keyTab + keyTab + keyTab + "cpu, numa")
		s.press(keyEsc)
		s.steps([2]string{"Which pNIC", keyEsc})
		s.shows("How should")
		s.resize(80, 24)
		s.steps([2]string{"> SR-IOV", "\r"}, [2]string{"Which pNIC", "\r"})
		s.shows("of 9 fields shown, this is field 1; Enter for the next")
		s.resize(120, 40)
		s.shows("> cpu, numa")
		s.press(strings.Repeat("\r", 9))
		s.steps([2]string{"Which VMs", "\r"}, [2]string{"prevents the setup", keyEsc})
		s.shows("Which VMs")
		<-time.After(time.Second)
		s.press("\r")
		s.steps([2]string{"prevents the setup", "\r"}, [2]string{"Enter to apply this plan", "\r"})
		s.stopped(b)
		if a := s.out.Answers; a.Mode != answers.SRIOV || a.SRIOV.VFs != 12 || !a.Tuning.ReserveCPU || a.Tuning.NUMA != "nic" ||
			a.QoS.Lossless != answers.LosslessPFC || b.surveys != 2 {
			t.Errorf("%s, %+v, %+v, %s, %d surveys", a.Mode, a.SRIOV, a.Tuning, a.QoS.Lossless, b.surveys)
		}
	})
}
