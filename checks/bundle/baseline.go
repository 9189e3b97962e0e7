package bundle

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/google/renameio/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
)

// baselineFormat is the format version that this program writes and reads.
const baselineFormat = 1

// A Baseline is the state of a fabric when it was healthy.
type Baseline struct {
	Format    int                 `json:"format"`
	Made      time.Time           `json:"made"`
	Tool      string              `json:"tool,omitempty"` // version of rdma-setup
	Mode      string              `json:"mode"`
	Inventory *backends.Inventory `json:"inventory"`
}

// BaselineOf extracts from the facts of a check the settings and hardware that later checks are compared with; facts that change
// by themselves are left out. Facts that the check did not read (a quick check uses neither esxcli nor guests) are absent and are
// not compared later.
func BaselineOf(f *checks.Facts, made time.Time, tool string) *Baseline {
	inv := *f.Inventory
	inv.Gaps, inv.APICalls = nil, 0
	inv.VCenter.Clock = time.Time{}
	inv.Hosts = make([]backends.Host, len(f.Inventory.Hosts))
	for i, h := range f.Inventory.Hosts {
		h.PCI, h.RecentTasks, h.MemoryUsedMB = nil, nil, 0
		h.System = lastingSystem(h.System)
		inv.Hosts[i] = h
	}
	inv.Guests = make([]backends.Guest, len(f.Inventory.Guests))
	for i, g := range f.Inventory.Guests {
		g.KernelLog = nil
		inv.Guests[i] = g
	}
	return &Baseline{Format: baselineFormat, Made: made.UTC(), Tool: tool, Mode: string(f.Answers.Mode), Inventory: &inv}
}

// lastingSystem returns the facts that do not change by themselves.
func lastingSystem(known *backends.HostSystem) *backends.HostSystem {
	if known == nil {
		return nil
	}
	return &backends.HostSystem{Modules: known.Modules, VIBs: known.VIBs, Acceptance: known.Acceptance, Firmware: known.Firmware}
}

// plainID matches an instance UUID; any other text from a server is never used in a path.
var plainID = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)

// BaselinePath returns the path of a vCenter's baseline below a state directory.
func BaselinePath(stateDir, instanceUUID string) string {
	name := instanceUUID
	if !plainID.MatchString(name) {
		name = "vcenter"
	}
	return filepath.Join(stateDir, "baselines", name+".json")
}

// SaveBaseline writes a baseline atomically with mode 0600, into a directory with mode 0700.
func SaveBaseline(path string, b *Baseline) error {
	data, err := json.MarshalIndent(b, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return unusableBaseline(path, "written", err)
	}
	if err := renameio.WriteFile(path, append(data, '\n'), 0o600, renameio.WithStaticPermissions(0o600)); err != nil {
		return unusableBaseline(path, "written", err)
	}
	return nil
}

// LoadBaseline reads the baseline of the vCenter with this instance UUID; nil without an error if there is no such file.
func LoadBaseline(path, instanceUUID string) (*Baseline, error) {
	data, err := backends.InputBaseline.ReadFile(path)
	if err == nil {
		err = backends.InventoryJSON.Check(data)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, unusableBaseline(path, "read", err)
	}
	var b Baseline
	if err := json.Unmarshal(data, &b); err != nil {
		return nil, unusableBaseline(path, "read", err)
	}
	switch {
	case b.Inventory == nil || b.Format == 0:
		return nil, unusableBaseline(path, "read", errors.New("it is not a baseline"))
	case b.Format > baselineFormat:
		return nil, unusableBaseline(path, "read", fmt.Errorf("it was written by a later version (format %d, this program reads %d)", b.Format,
			baselineFormat))
	case b.Inventory.VCenter.InstanceUUID != instanceUUID:
		return nil, unusableBaseline(path, "used", fmt.Errorf("it is of another vCenter, %s", b.Inventory.VCenter.URL))
	}
	return &b, nil
}

func unusableBaseline(path, verb string, err error) error {
	return backends.Permanentf("", "save a new one with check --save-baseline, or check without one: --baseline none",
		"the baseline %s could not be %s: %w", path, verb, err)
}
