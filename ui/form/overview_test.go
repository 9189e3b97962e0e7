package form

import (
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

// Hosts can be selected as soon as their names and states are known. The selection and the filter are kept when the rest has
// been read, and Enter waits for it.
func TestHostsAreShownByNameFirst(t *testing.T) {
	testclass.Plain(t)
	synctest.Test(t, func(t *testing.T) {
		b := &busy{world: world{shared: true, late: make(chan error)}}
		s := open(t, b)
		s.steps([2]string{"vCenter address", "\r\r"}, [2]string{"Password of", "right\r"}, [2]string{"VMs, which are being", "/02\r"})
		s.press(" ")
		s.resize(100, 30)
		s.shows("esx-02 in DC: its pNICs are being read")
		b.late <- nil
		synctest.Wait()
		s.resize(120, 40)
		s.shows("3 VMs")
		s.resize(100, 30)
		s.shows("pNICs for RDMA: vmnic2")
		s.resize(120, 40)
		s.shows(`1 of 1 (filter "02", 3 in total; Esc clears it), 1 chosen`)
		s.press(keyEsc)
		s.shows("3, 1 chosen")
		s.press(keyEsc)
		s.steps([2]string{"vCenter address", "\r\r"}, [2]string{"VMs, which are being", "\r"},
			[2]string{"reading pNICs, switches and VMs", keyEsc})
		s.shows("Space choose")
		s.press("\r")
		s.shows("reading pNICs, switches and VMs")
		b.late <- nil
		s.steps([2]string{"How should", keyEsc}, [2]string{"Which hosts", keyEsc}, [2]string{"vCenter address", "\r\r"},
			[2]string{"VMs, which are being", "\r"})
		b.late <- backends.Errorf(backends.KindUnreachable, "vcenter.example", "check the way there", "the connection was lost")
		s.shows("the connection was lost")
		s.press("\x03")
		s.end()
		if len(b.logins) != 3 {
			t.Errorf("%d log-ins", len(b.logins))
		}
	})
}

// A read of the overview ends when its page is left for the login, and before the wizard returns: its caller closes the connection.
func TestOverviewIsNotReadAfterItsPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &busy{world: world{shared: true, late: make(chan error)}}
		s := open(t, b)
		s.steps([2]string{"vCenter address", "\r\r"}, [2]string{"Password of", "right\r"}, [2]string{"VMs, which are being", keyEsc})
		s.shows("vCenter address")
		synctest.Wait()
		if n := atomic.LoadInt32(&b.reads); n != 0 {
			t.Errorf("%d overviews are read while the operator logs in", n)
		}
		s.press("\r\r")
		s.steps([2]string{"VMs, which are being", "\x03"})
		s.end()
		if n := atomic.LoadInt32(&b.reads); n != 0 {
			t.Errorf("%d overviews are read after the wizard's end", n)
		}
	})
}
