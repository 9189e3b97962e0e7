package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
)

// A Disruption is a noticeable effect of a change.
type Disruption string

// The disruptions.
const (
	HostReboot   Disruption = "host reboot"
	VMPowerCycle Disruption = "VM power cycle"
	UplinkFlap   Disruption = "uplink flap"
	GuestReboot  Disruption = "guest reboot"
	GuestNetwork Disruption = "guest RDMA interface down"
	NoVMotion    Disruption = "loss of vMotion"
	NoSnapshots  Disruption = "loss of snapshots"
	NoHA         Disruption = "loss of HA"
	NoSuspend    Disruption = "loss of suspend and resume"
	MemoryLocked Disruption = "memory fully reserved"
)

// A Change moves one setting of one target from its current value to the requested one.
type Change struct {
	backends.Setting
	From, To backends.Value
	Why      string       // one sentence for the operator
	Disrupts []Disruption // noticeable effects
	After    []string     // ids of changes and brackets that must be done before; a bracket is done after it was closed
	Within   []string     // ids of the brackets that must be open while the change is made
	// Irreversible says why it cannot be undone ("a hardware version cannot be lowered"), "" if rollback works.
	Irreversible string
	// State marks a repair of something that is not a setting (a port that is down): rollback does not change it.
	State bool
	// Late is combined with the value that is read when the change is due, if it cannot be read before (firmware, before its
	// tools are installed): Resolve computes the new value. Then To is not Known. Absent if To is final.
	Late backends.Value
	// Restore are the recorded items that a rollback restores, whatever the setting's current value. Leave are those that differ
	// too and stay as someone else has changed them, because the operator said so.
	Restore, Leave []backends.Difference
	// Yield: items of Restore that can no longer be obtained stay as they are, because the operator said so.
	Yield bool
}

// changeJSON has from and to as plain JSON, so that anyone can read them; their states distinguish a text from a value that is
// not known yet.
type changeJSON struct {
	ID           string          `json:"id"`
	Kind         backends.Kind   `json:"kind"`
	Target       backends.Ref    `json:"target"`
	Name         string          `json:"name,omitempty"`
	From         json.RawMessage `json:"from"`
	FromState    backends.State  `json:"from_state,omitempty"`
	To           json.RawMessage `json:"to"`
	ToState      backends.State  `json:"to_state,omitempty"`
	Why          string          `json:"why"`
	Disrupts     []Disruption    `json:"disrupts"`
	After        []string        `json:"after"`
	Within       []string        `json:"within,omitempty"`
	Irreversible string          `json:"irreversible,omitempty"`
	State        bool            `json:"state,omitempty"`
	Late         backends.Value  `json:"late,omitzero"`

	Restore []backends.Difference `json:"restore,omitempty"`
	Leave   []backends.Difference `json:"leave,omitempty"`
	Yield   bool                  `json:"yield,omitempty"`
}

// JSONShape returns sample values with the fields that MarshalJSON writes.
func (c Change) JSONShape() []any { return []any{changeJSON{}} }

// MarshalJSON writes the documented fields; lists are never null.
func (c Change) MarshalJSON() ([]byte, error) {
	j := changeJSON{
		ID: c.ID(), Kind: c.Kind, Target: c.Target, Name: c.Name, Why: c.Why,
		Disrupts: append([]Disruption{}, c.Disrupts...), After: append([]string{}, c.After...), Within: c.Within,
		Irreversible: c.Irreversible, State: c.State, Late: c.Late, Restore: c.Restore, Leave: c.Leave, Yield: c.Yield,
	}
	var err error
	if j.From, j.FromState, err = c.From.Plain(); err != nil {
		return nil, err
	}
	if j.To, j.ToState, err = c.To.Plain(); err != nil {
		return nil, err
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads the output of MarshalJSON; the id follows from target, kind and name.
func (c *Change) UnmarshalJSON(b []byte) error {
	var j changeJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	from, err := backends.ReadPlain(j.From, j.FromState)
	if err != nil {
		return err
	}
	to, err := backends.ReadPlain(j.To, j.ToState)
	if err != nil {
		return err
	}
	*c = Change{
		Setting: backends.Setting{Target: j.Target, Kind: j.Kind, Name: j.Name},
		From:    from, To: to, Why: j.Why, Disrupts: j.Disrupts, After: j.After, Within: j.Within,
		Irreversible: j.Irreversible, State: j.State, Late: j.Late, Restore: j.Restore, Leave: j.Leave, Yield: j.Yield,
	}
	return nil
}

// A Bracket is opened before its body (the changes that name it in Within) and closed after it. Brackets are derived from the
// changes and never undone; after an interrupted run, resume closes them.
type Bracket struct {
	Kind   backends.BracketKind `json:"kind"`
	Target backends.Ref         `json:"target"`
	Why    string               `json:"why"`
	// From is the state of the target at planning time; Absent: it is not compared when the bracket is opened.
	From backends.Value `json:"from,omitzero"`
	// Leave is the state after Close; Absent: the state before Open.
	Leave backends.Value `json:"leave"`
	After []string       `json:"after,omitempty"` // ids that must be done before it is opened
	// AfterAny are ids that must have ended before it is opened, done or failed.
	AfterAny []string `json:"after_any,omitempty"`
	// Around are the ids of brackets that are opened and closed while this one is open: a VM is off while its host reboots. A
	// bracket with Around and without a body is opened only if one of them is.
	Around []string `json:"around,omitempty"`
	// Round distinguishes several brackets of one kind and target, from 2 on: the second reboot of a host.
	Round int `json:"round,omitempty"`
	// Proof: opened and closed before any change, only to test a login. A plan contains no such bracket: the engine creates one
	// for each host whose shell the plan opens.
	Proof bool `json:"proof,omitempty"`
	// Effect is the disruption, given the state before: HostReboot, VMPowerCycle.
	Effect Disruption `json:"effect"`
	// Apart are names of groups: two brackets with a common group are never open at the same time.
	Apart []string `json:"apart,omitempty"`
}

// HostFound is the From of a bracket that takes a host out of service.
func HostFound(maintenance bool) backends.Value {
	return backends.ValueOf(map[string]bool{"maintenance": maintenance})
}

// MaintenanceFound is the From of a bracket that keeps a host in maintenance mode.
func MaintenanceFound(maintenance bool) backends.Value {
	if maintenance {
		return backends.ValueOf("maintenance")
	}
	return backends.ValueOf("normal")
}

// InMaintenance reports whether the host is already in maintenance mode before the bracket is opened.
func (b Bracket) InMaintenance() bool { return b.From == HostFound(true) }

// TakesHostDown reports whether brackets of a kind take their host out of service.
func TakesHostDown(k backends.BracketKind) bool {
	return k == backends.BracketMaintenance || k == backends.BracketReboot
}

// PowerID is the ID of a VM's power cycle.
func PowerID(vm string) string {
	return Bracket{Kind: backends.BracketVMPower, Target: backends.VMRef(vm)}.ID()
}

// ID is "vm/vm-01/vm-power", in a second round "host/esx-01/host-reboot/2".
func (b Bracket) ID() string {
	id := b.Target.String() + "/" + string(b.Kind)
	if b.Round > 1 {
		id += "/" + strconv.Itoa(b.Round)
	}
	return id
}

// RoundOf returns the Round of a bracket from its id.
func RoundOf(id string) int {
	n, err := strconv.Atoi(id[strings.LastIndex(id, "/")+1:])
	if err != nil {
		return 0
	}
	return n
}

// ESXi's names for PVRDMA's own settings.
const (
	FirewallRuleset = "pvrdma" // TCP 28250 to 28761, in and out, between the vmknics of hosts
)

// PeerModules is the set of guest modules with which the NIC can access GPU memory.
const PeerModules = "gpu"

// Resolve returns the value that a change sets once its current value has been read: To, or for a Late change what follows from
// both (firmware: nic.MergeFirmware and nic.Burn).
func Resolve(c Change, now backends.Value) (backends.Value, error) {
	if c.Late.IsAbsent() {
		return c.To, nil
	}
	if c.Kind == backends.KindFirmwareImage {
		return resolveImage(c, now)
	}
	var want, have map[string]string
	if err := c.Late.Decode(&want); err != nil {
		return c.To, fmt.Errorf("%s: %w", c.ID(), err)
	}
	if err := now.Decode(&have); err != nil {
		return c.To, fmt.Errorf("%s: %w", c.ID(), err)
	}
	set, err := nic.MergeFirmware(c.Target.Name, c.Name, want, have)
	if err != nil {
		return c.To, err
	}
	return backends.ValueOf(set), nil
}

func resolveImage(c Change, now backends.Value) (backends.Value, error) {
	var want nic.Burn
	var has backends.FirmwareImage
	if err := c.Late.Decode(&want); err != nil {
		return c.To, fmt.Errorf("%s: %w", c.ID(), err)
	}
	if err := now.Decode(&has); err != nil {
		return c.To, fmt.Errorf("%s: %w", c.ID(), err)
	}
	to, err := want.Resolve(c.Target.Name, c.Name, has)
	if err != nil {
		return c.To, err
	}
	return backends.ValueOf(to), nil
}

// ExpectedOpen returns how long opening a bracket is expected to take without measurements: evacuating a host about ten minutes,
// shutting a guest down two. These and the values below are cautious assumptions, not limits.
func ExpectedOpen(b Bracket) time.Duration {
	switch {
	case b.InMaintenance():
		return time.Second
	case b.Kind == backends.BracketReboot, b.Kind == backends.BracketMaintenance:
		return 10 * time.Minute
	case b.Kind == backends.BracketVMPower:
		return 2 * time.Minute
	}
	return 10 * time.Second
}

// ExpectedClose returns how long closing a bracket is expected to take: servers with much memory boot for a quarter of an hour.
func ExpectedClose(b Bracket) time.Duration {
	closing := map[backends.BracketKind]time.Duration{
		backends.BracketReboot: 15 * time.Minute, backends.BracketVMPower: 3 * time.Minute, backends.BracketMaintenance: time.Minute,
	}
	return cmp.Or(closing[b.Kind], 10*time.Second)
}

// MinutesOut returns how many minutes a host or a VM is expected to be out of service for a bracket of this kind.
func MinutesOut(k backends.BracketKind) int {
	b := Bracket{Kind: k}
	return int((ExpectedOpen(b) + ExpectedClose(b)).Minutes())
}

// ExpectedChange returns how long a change is expected to take.
func ExpectedChange(k backends.Kind) time.Duration {
	switch k {
	case backends.KindOFED, backends.KindBuild:
		return 30 * time.Minute
	case backends.KindComponent, backends.KindImageComponent, backends.KindPackages, backends.KindFirmwareImage:
		return 5 * time.Minute
	case backends.KindRestart:
		return 2 * time.Minute
	case backends.KindModules, backends.KindFirmware:
		return time.Minute
	}
	return 10 * time.Second
}
