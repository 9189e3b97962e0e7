package plan

import (
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
)

// TryFirst begins the note that names a pair of hosts to try before the others. It is of no use after the run.
const TryFirst = "to try one pair of hosts first: --limit "

// Options restrict or override the answers.
type Options struct {
	Skip     []string // check ids whose refusals the operator overrides if a plan is possible
	Limit    []string // host names: only these hosts, and the VMs on them
	ForceNIC []string // HOST/vmnicN: this pNIC, even if it carries traffic
	Only     []string // ids of changes: these and no others; nil: all
	// Dockerfile returns the file for building an image for PVRDMA's containers, from the base in the answers.
	Dockerfile func(base string) (string, error)
	// Ourselves are the addresses of this machine: the host that runs it must not reboot.
	Ourselves []string
	// Held lists VMs that an earlier attempt left powered off and that this plan powers on, once their hosts are back.
	Held []string
	// Down are the hosts that an earlier attempt has left out of service. Evacuated are those of them that it keeps in
	// maintenance mode for several reboots.
	Down, Evacuated []string
	// Flashed is the firmware that attempts before have written and a reboot should have loaded, by the ids of its settings.
	Flashed map[string]backends.FirmwareImage
	Until   time.Time // the end of the window; zero: none
}
