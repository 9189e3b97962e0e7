package form

import (
	"errors"
	"strings"

	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// components reads datastore paths as people type them: with commas or blanks between them.
func components(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
}

// What each question of mode sriov says beside its name.
const (
	aboutVFs        = "for each host, on the chosen pNIC; one for each VM with a VF, at most 127"
	aboutComponents = "MFT and NMST, where a host lacks them: /vmfs/volumes/DATASTORE/FILE.vib, .."
	aboutShell      = "sets card firmware by SSH where needed; key or RDMA_SETUP_ESXI_PASSWORD"
)

// depotPaths checks what was typed as components.
func depotPaths(a *answers.Answers) func(string) error {
	return func(s string) error {
		few := *a
		few.SRIOV.Components = components(s)
		return problem(&few, "sriov.components")
	}
}

// shellUser wants an account name.
func shellUser(s string) error {
	if strings.TrimSpace(s) == "" || strings.ContainsAny(s, " \t@:") {
		return errors.New("give an account of the hosts, root for instance")
	}
	return nil
}
