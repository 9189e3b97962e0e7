package backends

import "context"

// Kind says what sort of setting a Setting is; there is one Setter per Kind.
type Kind string

// A Setting is one thing of one target that can be read and set. Name tells settings of one kind apart (the key of an advanced
// option, the path of a file) and is empty if a target has only one.
type Setting struct {
	Target Ref
	Kind   Kind
	Name   string
}

// ID is stable across runs: "host/esx-01/option/Net.PVRDMAVmknic".
func (s Setting) ID() string {
	id := s.Target.String() + "/" + string(s.Kind)
	if s.Name != "" {
		id += "/" + s.Name
	}
	return id
}

// Progress takes percent done (0 to 100), as far as the other side reports any. It may be nil.
type Progress func(percent int)

// Report calls p where there is one.
func (p Progress) Report(percent int) {
	if p != nil {
		p(percent)
	}
}

// A Setter reads and sets all settings of one kind.
//
// Read gives what is there now, in the same shape as the values that the plan asks for, so that equal means nothing to do; Absent
// if the thing does not exist. Set is safe to repeat and returns nil only when the other side confirmed; setting Absent removes.
// After an error the value is unknown until Read. Both respect ctx.
type Setter interface {
	Read(ctx context.Context, s Setting) (Value, error)
	Set(ctx context.Context, s Setting, to Value, progress Progress) error
}

// A Resolver is a Setter whose values may name what gets its name only while the run goes on: the pNIC at a PCI address, which is none
// before the reboot that makes it one. Resolve gives the value with the names of now.
type Resolver interface {
	Resolve(ctx context.Context, s Setting, to Value) (Value, error)
}

// An Assignment is one setting and what it should become.
type Assignment struct {
	Setting
	To Value
}

// A ManySetter merges assignments of one parent (a DVS, a VM) into one reconfigure. Parent gives the key under which assignments
// may be merged; assignments of several kinds may share one parent when they share the ManySetter. SetMany returns one error per
// assignment, in order, nil if it was done.
type ManySetter interface {
	Setter
	Parent(s Setting) string
	SetMany(ctx context.Context, as []Assignment, progress Progress) []error
}

// BracketKind says what must be around a change while it is made.
type BracketKind string

// The brackets.
const (
	BracketVMPower     BracketKind = "vm-power"         // VM off while its devices change, on again after
	BracketMaintenance BracketKind = "host-maintenance" // host evacuated and in maintenance mode
	BracketReboot      BracketKind = "host-reboot"      // maintenance mode and a reboot after the body
	BracketSSH         BracketKind = "host-ssh"         // SSH service on an ESXi host, put back as found
)

// A Bracket opens a target for changes and closes it again. State reads what is there now; the engine journals it
// before Open. Open and Close are safe to repeat; Close brings the target to leave, a value State can give.
type Bracket interface {
	State(ctx context.Context, t Ref) (Value, error)
	Open(ctx context.Context, t Ref, progress Progress) error
	Close(ctx context.Context, t Ref, leave Value, progress Progress) error
}

// An EffectReader is a Bracket whose effect may come about before it is closed: a change within it, or somebody else, reboots the
// host. Happened reports whether it has since the state to leave was read.
type EffectReader interface {
	Happened(ctx context.Context, t Ref, leave Value) (bool, error)
}
