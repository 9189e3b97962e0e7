package world

import (
	"fmt"
	"strings"
	"time"
)

// keptLogs is the number of vmware.log files of earlier runs that ESXi keeps.
const keptLogs = 6

// logf adds a line to vmware.log in the format of ESXi 8. The thread is vmx or vcpu-0.
func (v *VM) logf(thread, format string, args ...any) {
	if len(v.Logs) == 0 {
		v.Logs = [][]string{nil}
	}
	v.Logs[0] = append(v.Logs[0], fmt.Sprintf("%s In(05) %s - %s", time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), thread,
		fmt.Sprintf(format, args...)))
}

// LogStart starts the vmware.log of a run on a host with the configuration of the VM and its assigned devices.
func (s *State) LogStart(v *VM) {
	v.Logs = append([][]string{nil}, v.Logs...)
	v.Logs = v.Logs[:min(len(v.Logs), keptLogs+1)]
	h := s.Host(v.Host)
	v.logf("vmx", "Log for VMware ESX pid=%d version=%s build=build-%s option=Release", 2100000+v.Index, h.Version, h.Build)
	v.logf("vmx", "Hostname=%s", h.Name)
	v.logf("vmx", "DICT --- CONFIGURATION")
	for _, kv := range [][2]string{{"virtualHW.version", fmt.Sprint(v.Hardware)}, {"firmware", v.Firmware},
		{"memSize", fmt.Sprint(v.MemoryMB)},
		{"sched.mem.min", fmt.Sprint(v.Reserved)}, {"numvcpus", fmt.Sprint(v.CPUs)}} {
		v.logf("vmx", "DICT %24s = %q", kv[0], kv[1])
	}
	for _, key := range sortedKeys(v.Extra) {
		v.logf("vmx", "DICT %24s = %q", key, v.Extra[key])
	}
	for n, d := range s.Given(v) {
		for _, b := range d.BARs {
			kind, flags := 2, 0
			if b.Wide {
				kind, flags = 3, 12
			}
			v.logf("vmx", "PCIPassthru: Device %s barIndex %d type %d realaddr %#x size %d flags %d", d.Address, b.Index, kind, realAddress(n, b),
				b.MB<<20, flags)
		}
	}
}

// realAddress returns the address of a memory region in the host.
func realAddress(n int, b BAR) int64 {
	if b.Wide {
		return 0x380000000000 + int64(n)<<40 + int64(b.Index)<<37
	}
	return 0xd4000000 + int64(n)<<24
}

// LogRefused ends the vmware.log of a failed power-on with lines that appear only in the log.
func (s *State) LogRefused(v *VM, lines ...string) {
	for _, l := range lines {
		v.logf("vmx", "%s", l)
	}
	v.logf("vmx", "Power on failure messages:")
	v.logf("vmx", "Vix: [mainDispatch.c:4239]: VMAutomation_ReportPowerOpFinished: statevar=0, newAppState=1870, success=0 additionalError=0")
}

// LogStarted ends the vmware.log of a successful power-on with the lines up to the firmware.
func (s *State) LogStarted(v *VM) {
	if len(s.Given(v)) > 0 {
		v.logf("vcpu-0", "PCIPassthru: successfully created the IOMMU mappings")
	}
	if v.Firmware == "efi" {
		v.logf("vcpu-0", "Guest: EFI ROM version: VMW71.00V.21805430.B64.2305221826 (64-bit RELEASE)")
	}
}

// Log returns the content of a vmware.log file: 0 is the latest.
func (v *VM) Log(n int) (string, bool) {
	if n < 0 || n >= len(v.Logs) {
		return "", false
	}
	return strings.Join(append(append([]string{}, v.Logs[n]...), ""), "\n"), true
}
