package backends

// GPUUnit is the state of this program's unit that sets persistence mode of NVIDIA's driver at boot; "": there is none.
type GPUUnit string

// The states of the unit.
const (
	GPUUnitEnabled GPUUnit = "enabled"
	GPUUnitPartial GPUUnit = "partial"
)

// Persistence returns the value of KindGPUPersist for the GPUs of a guest.
func (u GPUUnit) Persistence(gpus []GuestGPU) Value {
	on := len(gpus) > 0
	for _, d := range gpus {
		on = on && d.Persistent != nil && *d.Persistent
	}
	switch {
	case u == GPUUnitPartial, u == GPUUnitEnabled && !on:
		return Partial(nil)
	case on:
		return ValueOf(true)
	}
	return Absent
}

// Nouveau is the state of nouveau, the kernel's own driver for NVIDIA GPUs, in a guest.
type Nouveau struct {
	Loaded    bool `json:"loaded"`
	Kept      bool `json:"blacklisted"` // by a file of this program
	Dracut    bool `json:"dracut,omitempty"`
	Renewable bool `json:"renewable"` // update-initramfs or dracut can rebuild the initial RAM disk
}

// Value returns the value of KindNouveau; a nil Nouveau is Absent.
func (n *Nouveau) Value() Value {
	switch {
	case n == nil, n.Loaded && !n.Kept:
		return Absent
	case n.Kept && !n.Loaded:
		return ValueOf(true)
	}
	return Partial(nil)
}
