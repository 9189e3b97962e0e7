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

// State is the data of a World. It is valid only inside the callback to which it was passed.
type State struct {
	VCenter    string // vCenter version; "": 8.0.3
	Datacenter string
	Others     []string // names of the datacenters in addition to the first one
	Cluster    string
	Hosts      []*Host
	VMs        []*VM
	Switches   []*DVS
	Folders    []*Folder        // VM folders, below vm
	NetFolders []*Folder        // network folders, below network
	Depot      []*Package       // VIBs and bundles on the datastore
	Images     []firmware.Image // firmware files for cards on the datastore
	Lossless   string           // requested lossless mode in the answers for SR-IOV: pfc, or "" for the default
	DHCP       string           // IPv4 network of the DHCP server on the RDMA switch; "": no server
	Lifecycle  Lifecycle        // depots for the images of clusters
	Services   Services
	Clusters   []Cluster // in addition to the first one, whose name and services are above

	Skew   time.Duration // by how much vCenter's clock is ahead
	Reader bool          // users log in to vCenter with a read-only account

	ids int

	GPUs      map[string][]string // GPUs by VM, for the answers; nil: every free one
	Rails     []string            // PCI addresses of the NICs of each rail, for the answers; nil: one rail
	GPURails  bool                // the answers for GPUDirect request VFs: the VMs of a host share its cards
	HCA       string              // PCI address of the NICs to pass through to VMs, for the answers; "": selected by speed
	Port      string              // PCI address of the RDMA port, for the answers for SR-IOV; "": selected by speed
	VGPU      string              // profile of the vGPU that the answers for GPUDirect request in each VM, "": passthrough of GPUs
	Manager   string              // file of NVIDIA's vGPU Manager in the answers for GPUDirect, "": none
	Beside    bool                // the answers for GPUDirect request GPUs in addition to PVRDMA adapters
	Software  bool                // the answers for GPUDirect use files of a share in the guests, not packages
	Strangers []string            // VMs that are not in the answers
	Refused   map[string]string   // scenarios that must be refused: exit code of apply and reason, by mode
}

// OneEach returns answers for GPUDirect for a world without prepared answers: the first VM of each host gets a complete card
// and the first GPU below the same root port as a Mellanox card.
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

// VCenterVersion returns the version of vCenter.
func (s *State) VCenterVersion() string { return cmp.Or(s.VCenter, "8.0.3") }

// Asked returns the VMs in the answers.
func (s *State) Asked() []*VM {
	var list []*VM
	for _, v := range s.VMs {
		if !slices.Contains(s.Strangers, v.Name) {
			list = append(list, v)
		}
	}
	return list
}

// NextID returns a number for the reference of a new switch or port group.
func (s *State) NextID() int {
	s.ids++
	return 20 + s.ids
}

// Timing contains the durations in the lab.
type Timing struct {
	Latency    time.Duration // delay added to every vCenter call
	HostReboot time.Duration // duration of a host reboot; default: 3 s
	VMBoot     time.Duration // time from power-on until the guest responds; default: 1 s
	Shutdown   time.Duration // time from the shutdown request until the guest is off; default: 200 ms
	Task       time.Duration // duration of a task of vCenter without a duration of its own; default: 40 ms
	Commands   timing.Clock  // durations of commands in guests and hosts
}

// A World is a simulated data centre. Close stops its timers.
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
	running  sync.WaitGroup // timers that are currently firing
}

// Secrets are the passwords of the lab. They protect only a simulation.
type Secrets struct {
	ESXi          string // root password of the ESXi shells
	Guest         string // password of the guests' users
	Sudo          string // password for sudo in guests that require one
	AuthorizedKey string // public key in authorized_keys format, accepted by guests and ESXi shells
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

// Options configure the behaviour of a world, but not its content.
type Options struct {
	Timing   Timing
	Faults   []string // fault rules, see fault.Rule
	Secrets  Secrets  // empty fields are replaced by the lab's fixed values
	Unlogged bool     // programs and calls are not logged
}

// New starts a world. found fills in its data, such as hosts and VMs with their configuration. New computes derived data, such
// as the addresses of running guests.
func New(o Options, found func(*State) error) (*World, error) {
	faults, err := fault.Parse(o.Faults)
	if err != nil {
		return nil, err
	}
	w := &World{
		Timing:  o.Timing,
		Faults:  faults,
		Log:     &Log{unlogged: o.Unlogged},
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
	if w.Timing.Task == 0 {
		w.Timing.Task = 40 * time.Millisecond
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

// Close stops all timers and waits for those that are firing. After that the world does not change.
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

// View calls f with the state locked. f must not keep pointers and must not call methods of World.
func (w *World) View(f func(*State)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(&w.state)
}

// Update calls f with the state locked, then logs and publishes the events that f returns, in order. Other lab packages use it
// for changes for which World has no method.
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

// Watch registers f to be called after every change, without any lock held. f must not block for long.
func (w *World) Watch(f func(Event)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watchers = append(w.watchers, f)
}

// OnPower registers f. f(true) is called when the VM's guest has booted (VMBoot after power-on or reset), and f(false) when it
// goes down: power-off, shutdown, reboot, failure of its host. f is not called for the current state.
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

// After calls f when d has elapsed, unless the world is closed before.
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

// Host returns a host by name, or nil if there is none.
func (s *State) Host(name string) *Host {
	return find(s.Hosts, func(h *Host) bool { return h.Name == name })
}

// VM returns a VM by name or by inventory path, or nil if there is none.
func (s *State) VM(name string) *VM {
	return find(s.VMs, func(v *VM) bool {
		return v.Name == name || v.Path == name || v.Title != "" && Escaped(v.Title) == Escaped(name)
	})
}

// Switch returns a DVS by name, or nil if there is none.
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
