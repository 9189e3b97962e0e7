package esxi

import (
	"encoding/hex"
	"regexp"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// VMs is what "esxcli vm process list" prints: the VMs that run on the host.
type VMs struct {
	scan.Envelope
	VMs []VM `json:"vms"`
}

// VM is a running VM.
type VM struct {
	DisplayName *string `json:"display_name"`
	WorldID     *int64  `json:"world_id"`
	ProcessID   *int64  `json:"process_id"`
	CartelID    *int64  `json:"cartel_id"`
	UUID        *string `json:"uuid"` // 8-4-4-4-12, lower case
	ConfigFile  *string `json:"config_file"`
}

// vmStart is where a record begins in a text that is all on one line, if the VM's name has no blanks.
var vmStart = regexp.MustCompile(`\S+\s+World ID:`)

// VMList reads "esxcli vm process list".
func VMList(text string) VMs {
	r := VMs{VMs: []VM{}}
	r.Envelope, text = scan.Begin("esxcli_vm_process_list", text)
	text = scan.Unfold(text, vmStart)
	records := scan.Named("World ID", "Process ID", "VMX Cartel ID", "UUID", "Display Name", "Config File").
		Records(text, scan.Opening{First: "World ID", Head: func(string) bool { return true }})
	for _, f := range records {
		v := VM{
			DisplayName: f.Str("Display Name"), WorldID: f.Int("World ID"), ProcessID: f.Int("Process ID"),
			CartelID: f.Int("VMX Cartel ID"), UUID: uuid(f.Value("UUID")), ConfigFile: f.Str("Config File"),
		}
		if v.DisplayName == nil {
			v.DisplayName = scan.Str(f.Head)
		}
		if len(f.Tail) > 0 && !strings.HasSuffix(f.Value("Config File"), ".vmx") {
			if joined := strings.TrimSpace(f.Value("Config File") + " " + f.Tail[0]); strings.HasSuffix(joined, ".vmx") {
				v.ConfigFile = &joined
			}
		}
		r.VMs = append(r.VMs, v)
	}
	r.NotUnderstood(len(records) > 0 || strings.Contains(text, "VMX Cartel ID:"), text)
	return r
}

// uuid converts "56 4d 2a c3 71 0e 95 4b-b8 16 5f d2 3c 90 e7 08" to the usual form.
func uuid(s string) *string {
	if len(s) > 64 {
		return nil
	}
	b, err := hex.DecodeString(strings.NewReplacer(" ", "", "-", "").Replace(strings.ToLower(s)))
	if err != nil || len(b) != 16 {
		return nil
	}
	h := hex.EncodeToString(b)
	return new(h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:])
}
