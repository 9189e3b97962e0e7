package plan

import "time"

// Options narrow or force what answers alone would give.
type Options struct {
	Skip     []string // check ids whose refusals the operator overrides, where a plan is possible without
	Limit    []string // host names: only these, and the VMs on them
	ForceNIC []string // HOST/vmnicN: this pNIC, even where it carries traffic
	Only     []string // ids of changes: these and no others; nil: all
	// Dockerfile gives the file that an image for PVRDMA's containers is built by, from the base of the answers.
	Dockerfile func(base string) (string, error)
	// Ourselves are the addresses of the machine that plans: a host that runs it does not reboot.
	Ourselves []string
	// Held lists VMs that an earlier attempt left powered off and this one powers on, once their hosts are back.
	Held []string
	// Down are the hosts that an attempt before has left out of service. Evacuated are those of them that it keeps in
	// maintenance mode over several reboots.
	Down, Evacuated []string
	Until           time.Time // the end of the window; zero: none
}
