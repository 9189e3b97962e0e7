package world

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab/firmware"
	"github.com/rdma-setup/rdma-setup/backends/lab/timing"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/fault"
)

// State is the data of a World. It is valid only inside the callback that handed it out.
type State struct {
	VCenter    string // version of vCenter; "": 8.0.3
	Datacenter string
	Cluster    string
	HostThumb  string // SHA-1 of the certificate that every host shows on port 443
	Hosts      []*Host
	VMs        []*VM
	Switches   []*DVS
	Folders    []*Folder        // of VMs, below vm
	NetFolders []*Folder        // of switches, below network
	Depot      []*Package       // VIBs and bundles on the datastore
	Images     []firmware.Image // firmware of cards on the datastore
	Lossless   string           // what the answers for SR-IOV request: pfc, or "" for the default
	DHCP       string           // the IPv4 network in which a DHCP server answers guests on the RDMA switch; "": there is none
	Lifecycle  *Lifecycle       // the image that manages the cluster; nil: baselines
	Services   Services

	Skew   time.Duration // how far vCenter's clock is ahead
	Reader bool          // users log in to vCenter with a read-only account

	ids int

	GPUs      map[string][]string // of which VM which GPUs, for the answers; nil: every free one
	Rails     []string            // PCI addresses of the NICs of each rail, for the answers; nil: one rail
	GPURails  bool                // the answers for GPUDirect request VFs: the VMs of a host share its cards
	HCA       string              // PCI address of the NICs that go into VMs, for the answers; "": by speed
	Port      string              // PCI address of the RDMA port, for the answers for SR-IOV; "": by speed
	VGPU      string              // profile of the vGPU that the answers for GPUDirect request in each VM, "": whole GPUs
	Manager   string              // file with NVIDIA's vGPU Manager that the answers for GPUDirect name, "": none
	Beside    bool                // the answers for GPUDirect request GPUs in addition to PVRDMA adapters
	Software  bool                // the answers for GPUDirect name files of a share in the guests, not packages
	Strangers []string            // VMs that the answers do not name
	Refused   map[string]string   // by mode: exit code of apply and the reason, if the scenario must be refused
}

// OneEach are answers for GPUDirect of a world that was not made for it: a whole card goes to one VM of a host, the first,
// with the first GPU that is below the same root port as a card of Mellanox.
func (s *State) OneEach() (vms []*VM, gpus map[string][]string) {
	gpus = map[string][]string{}
	served := map[string]bool{}
	for _, v := range s.Asked() {
		h := s.Host(v.Host)
		if h == nil || served[v.Host] {
			continue
		}
		served[v.Host] = true
		vms = append(vms, v)
		if at := h.nearGPU(); at != "" {
			gpus[v.Name] = []string{at}
		}
	}
	return vms, gpus
}

// VCenterVersion is the version of vCenter.
func (s *State) VCenterVersion() string { return cmp.Or(s.VCenter, "8.0.3") }

// Asked returns the VMs that the answers name.
func (s *State) Asked() []*VM {
	var list []*VM
	for _, v := range s.VMs {
		if !slices.Contains(s.Strangers, v.Name) {
			list = append(list, v)
		}
	}
	return list
}

// NextID returns the numbers for the references of new switches and port groups.
func (s *State) NextID() int {
	s.ids++
	return 20 + s.ids
}

// Timing contains the durations in the lab.
type Timing struct {
	Latency    time.Duration // added to every vCenter call
	HostReboot time.Duration // 3 s when zero
	VMBoot     time.Duration // from power-on until the guest answers; 1 s when zero
	Shutdown   time.Duration // from the request until the guest is off; 200 ms when zero
	Commands   timing.Clock  // how long commands of guests and hosts take
}

// A World is one data centre. Close stops its timers.
type World struct {
	Timing  Timing
	Faults  *fault.Rules
	Log     *Log
	Secrets Secrets

	commands commands

	mu       sync.Mutex
	state    State
	closed   bool
	timers   map[*time.Timer]struct{}
	watchers []func(Event)
	power    map[string][]func(on bool)
	running  sync.WaitGroup // timers that are firing
}

// Secrets are the passwords of the lab. They protect only a simulation.
type Secrets struct {
	ESXi          string // of root in the ESXi shells
	Guest         string // of the guests' users
	Sudo          string // required if a guest's sudo asks
	AuthorizedKey string // public key, in authorized_keys form, that the guests and ESXi shells accept
}

func (s Secrets) withDefaults() Secrets {
	for _, field := range []struct {
		value *string
		plain string
	}{{&s.ESXi, "Lab-esxi-1"}, {&s.Guest, "Lab-guest-1"}, {&s.Sudo, "Lab-guest-1"}} {
		if *field.value == "" {
			*field.value = field.plain
		}
	}
	return s
}

// Options configure the behaviour of a world, independent of its content.
type Options struct {
	Timing  Timing
	Faults  []string // rules, see fault.Rule
	Secrets Secrets  // empty fields take the lab's fixed ones
	LogText int      // bytes of different argument lists that the log holds at most; 0: keepText
}

// New starts a world whose data found fills in: hosts and VMs as they were configured. New computes what follows from
// that, such as the addresses of running guests.
func New(o Options, found func(*State) error) (*World, error) {
	faults, err := fault.Parse(o.Faults)
	if err != nil {
		return nil, err
	}
	w := &World{
		Timing:  o.Timing,
		Faults:  faults,
		Log:     &Log{most: cmp.Or(o.LogText, keepText)},
		Secrets: o.Secrets.withDefaults(),
		timers:  map[*time.Timer]struct{}{},
		power:   map[string][]func(bool){},
	}
	if w.Timing.HostReboot == 0 {
		w.Timing.HostReboot = 3 * time.Second
	}
	if w.Timing.VMBoot == 0 {
		w.Timing.VMBoot = time.Second
	}
	if w.Timing.Shutdown == 0 {
		w.Timing.Shutdown = 200 * time.Millisecond
	}
	if err := found(&w.state); err != nil {
		return nil, err
	}
	if err := w.state.boot(); err != nil {
		return nil, err
	}
	return w, nil
}

// Close stops all timers and waits for those that are firing. Nothing happens in the world after that.
func (w *World) Close() {
	w.mu.Lock()
	w.closed = true
	for t := range w.timers {
		if t.Stop() {
			w.running.Done()
		}
	}
	clear(w.timers)
	w.mu.Unlock()
	w.running.Wait()
}

// View calls f with the state locked. f must neither keep pointers nor call methods of World.
func (w *World) View(f func(*State)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(&w.state)
}

// Update calls f with the state locked, then logs and publishes the events that f returns, in order.
// It is the way for other lab packages to change what has no method of its own.
func (w *World) Update(f func(*State) ([]Event, error)) error {
	events, err := w.change(f)
	w.publish(events...)
	return err
}

func (w *World) change(f func(*State) ([]Event, error)) ([]Event, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return f(&w.state)
}

// Watch calls f after every change, without any lock held. f must not block for long.
func (w *World) Watch(f func(Event)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watchers = append(w.watchers, f)
}

// OnPower calls f(true) when the VM's guest system has come up (VMBoot after power-on or reset) and f(false) at the
// moment when it goes down: power-off, shutdown, reboot, death of its host. It is not called for the present state.
func (w *World) OnPower(vm string, f func(on bool)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.power[vm] = append(w.power[vm], f)
}

func (w *World) publish(events ...Event) {
	w.mu.Lock()
	watchers := slices.Clone(w.watchers)
	w.mu.Unlock()
	for _, e := range events {
		w.Log.add(e)
		for _, f := range watchers {
			f(e)
		}
	}
}

func (w *World) guestWent(vm string, on bool) {
	w.mu.Lock()
	hooks := slices.Clone(w.power[vm])
	w.mu.Unlock()
	for _, f := range hooks {
		f(on)
	}
}

// After calls f once d has passed, unless the world is closed before.
func (w *World) After(d time.Duration, f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.afterLocked(d, f)
}

func (w *World) afterLocked(d time.Duration, f func()) {
	if w.closed {
		return
	}
	w.running.Add(1)
	var t *time.Timer
	t = time.AfterFunc(d, func() {
		defer w.running.Done()
		w.mu.Lock()
		delete(w.timers, t)
		closed := w.closed
		w.mu.Unlock()
		if !closed {
			f()
		}
	})
	w.timers[t] = struct{}{}
}

// Host finds a host by name; nil when there is none.
func (s *State) Host(name string) *Host {
	return find(s.Hosts, func(h *Host) bool { return h.Name == name })
}

// VM finds a VM by name or by inventory path; nil when there is none.
func (s *State) VM(name string) *VM {
	return find(s.VMs, func(v *VM) bool {
		return v.Name == name || v.Path == name || v.Title != "" && Escaped(v.Title) == Escaped(name)
	})
}

// Switch finds a DVS by name; nil when there is none.
func (s *State) Switch(name string) *DVS {
	return find(s.Switches, func(d *DVS) bool { return d.Name == name })
}

func find[T any](list []*T, is func(*T) bool) *T {
	if i := slices.IndexFunc(list, is); i >= 0 {
		return list[i]
	}
	return nil
}

func noHost(name string) error { return fmt.Errorf("no host %q in the lab", name) }

func noVM(name string) error { return fmt.Errorf("no VM %q in the lab", name) }
