package guest

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
	"github.com/rdma-setup/rdma-setup/backends/transcript"
)

// gpuPersist keeps NVIDIA's driver from releasing GPUs that nobody uses: KindGPUPersist. The mode ends at each reboot (NVML API
// Reference, nvmlDeviceSetPersistenceMode), so a unit sets it at boot.
type gpuPersist struct{ recorded }

const (
	// The name does not begin with unitPrefix: the units with that prefix belong to KindPersist.
	gpuUnitName = "nvidia-persistence-rdma_setup.service"
	daemonUnit  = "nvidia-persistenced.service"
)

// GPUUnitText returns the unit that switches persistence mode on. nvidia-smi asks NVIDIA's daemon to do it, if the daemon runs
// (nvidia-persistenced(1), "Installation"): Ubuntu starts that daemon without persistence mode, .run files install no unit for it.
func GPUUnitText() string {
	return ours + `[Unit]
Description=Keep NVIDIA GPUs initialized (persistence mode)
Wants=` + daemonUnit + `
After=` + daemonUnit + ` systemd-modules-load.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/bin/nvidia-smi -pm 1

[Install]
WantedBy=multi-user.target
`
}

func gpuPersistFacts() string {
	return section("gpuunit", "cat "+unitDir+gpuUnitName+"; [ -L "+wantsLink(gpuUnitName)+" ] && echo '# enabled'")
}

func (f facts) gpuUnit() backends.GPUUnit {
	switch strings.TrimSpace(f["gpuunit"]) {
	case "":
		return ""
	case strings.TrimSpace(GPUUnitText()) + "\n# enabled":
		return backends.GPUUnitEnabled
	}
	return backends.GPUUnitPartial
}

const smiQuery = "command -v nvidia-smi >/dev/null && nvidia-smi -q"

// modes returns the value and the persistence mode of each GPU, which lasts until the next boot.
func (g gpuPersist) modes(ctx context.Context, vm string) (backends.Value, []backends.Item, error) {
	f, err := g.g.facts(ctx, vm, ssh.Command{Script: section("smiquery", smiQuery) + gpuPersistFacts()})
	if err != nil {
		return backends.Absent, nil, err
	}
	var devices []backends.GuestGPU
	var items []backends.Item
	for _, d := range transcript.SMIQuery(f["smiquery"]).GPUs {
		devices = append(devices, backends.GuestGPU{Persistent: d.Persistence})
		if d.PCIAddress != nil && d.Persistence != nil {
			items = append(items, backends.Item{Kind: backends.ItemGPUPersist, Name: *d.PCIAddress, State: backends.ValueOf(*d.Persistence),
				Runtime: true})
		}
	}
	return f.gpuUnit().Persistence(devices), items, nil
}

// Read returns true if persistence mode is on for every GPU; Partial if the unit of this program exists and the mode is off, or
// the unit is incomplete; else Absent.
func (g gpuPersist) Read(ctx context.Context, s backends.Setting) (backends.Value, error) {
	now, _, err := g.modes(ctx, s.Target.Name)
	return now, err
}

func (g gpuPersist) Set(ctx context.Context, s backends.Setting, to backends.Value, _ backends.Progress) error {
	vm := s.Target.Name
	now, items, err := g.modes(ctx, vm)
	if err != nil || now == to {
		return err
	}
	if to.IsAbsent() {
		for i := range items {
			items[i].State = backends.ValueOf(false)
		}
		return g.Restore(ctx, s, backends.Kept{Items: append(items, backends.Item{Kind: backends.ItemFile, Name: unitDir + gpuUnitName},
			backends.Item{Kind: backends.ItemLink, Name: wantsLink(gpuUnitName)}, backends.Item{Kind: backends.ItemUnit, Name: gpuUnitName})}, nil)
	}
	if err := g.g.put(ctx, vm, unitDir+gpuUnitName, []byte(GPUUnitText()), 0o644, ""); err != nil {
		return err
	}
	_, err = g.g.root(ctx, vm, "keep GPUs initialized", ssh.Command{Limit: 2 * time.Minute,
		Script: "systemctl daemon-reload && systemctl enable " + gpuUnitName + " && systemctl restart " + gpuUnitName})
	if err != nil {
		return err
	}
	if now, err := g.Read(ctx, s); err != nil || now != to {
		return backends.Permanentf(label(vm), "Read its log: journalctl -u "+gpuUnitName,
			"persistence mode was set, but reads back as %s: %v", now, err)
	}
	return nil
}

// Keep records the unit, whether NVIDIA's daemon runs, and the mode of each GPU.
func (g gpuPersist) Keep(ctx context.Context, s backends.Setting, _ backends.Value) (backends.Kept, error) {
	_, modes, err := g.modes(ctx, s.Target.Name)
	if err != nil {
		return backends.Kept{}, err
	}
	kept, err := g.g.record(ctx, s.Target.Name, manifest{files: []string{unitDir + gpuUnitName}, links: []string{wantsLink(gpuUnitName)},
		units: []string{gpuUnitName, daemonUnit}})
	for i := range kept.Items {
		kept.Items[i].Runtime = kept.Items[i].Name == daemonUnit // it is gone with the driver's packages
	}
	kept.Items = append(kept.Items, modes...)
	return kept, err
}

func (g gpuPersist) Observe(ctx context.Context, s backends.Setting, kept backends.Kept) (backends.Kept, error) {
	_, modes, err := g.modes(ctx, s.Target.Name)
	if err != nil {
		return backends.Kept{}, err
	}
	modes = slices.DeleteFunc(modes, func(i backends.Item) bool { return kept.Item(i.Kind, i.Name) == nil })
	items, err := g.g.readItems(ctx, s.Target.Name, manifestOf(kept))
	return backends.Kept{Items: append(items, modes...)}.Bare(), err
}

// Restore restores the mode of each GPU, then the unit and the daemon.
func (g gpuPersist) Restore(ctx context.Context, s backends.Setting, kept backends.Kept, _ backends.Progress) error {
	now, err := g.Observe(ctx, s, kept)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, d := range backends.Differences(kept, now) {
		var on bool
		if d.Kind == backends.ItemGPUPersist && d.Was.Decode(&on) == nil {
			b.WriteString("nvidia-smi -i " + ssh.Quote(d.Name) + " -pm " + map[bool]string{false: "0", true: "1"}[on] + " || exit 1\n")
		}
	}
	if b.Len() > 0 {
		if _, err := g.g.root(ctx, s.Target.Name, "put persistence mode back",
			ssh.Command{Script: b.String(), Limit: 2 * time.Minute}); err != nil {
			return err
		}
	}
	return g.g.putBack(ctx, s.Target.Name, kept)
}
