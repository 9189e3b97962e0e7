package model

import (
	"fmt"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// VMFiles returns the names of the files in a VM's folder on the datastore that users read: the configuration and the logs. The
// latest log has no number; older logs are numbered in ascending order.
func VMFiles(v *world.VM) []string {
	names := []string{v.Stem() + ".vmx", v.Stem() + ".nvram", v.Stem() + ".vmdk"}
	for n := len(v.Logs); n > 1; n-- {
		names = append(names, fmt.Sprintf("vmware-%d.log", len(v.Logs)-n+1))
	}
	if len(v.Logs) > 0 {
		names = append(names, "vmware.log")
	}
	return names
}

// VMFile returns the text of a file in a VM's folder, or "" if it is not a text file.
func VMFile(v *world.VM, name string) string {
	number := 0
	switch n, _ := fmt.Sscanf(name, "vmware-%d.log", &number); {
	case name == "vmware.log":
		text, _ := v.Log(0)
		return text
	case n == 1:
		text, _ := v.Log(len(v.Logs) - number)
		return text
	case name == v.Stem()+".vmx":
		return vmx(v)
	}
	return ""
}

// vmx returns the part of the configuration file that clients of the lab need.
func vmx(v *world.VM) string {
	var b strings.Builder
	line := func(key, value string) { fmt.Fprintf(&b, "%s = %q\n", key, value) }
	line(".encoding", "UTF-8")
	line("virtualHW.version", fmt.Sprint(v.Hardware))
	line("displayName", v.Name)
	line("firmware", v.Firmware)
	line("memSize", fmt.Sprint(v.MemoryMB))
	line("numvcpus", fmt.Sprint(v.CPUs))
	if v.Reserved > 0 {
		line("sched.mem.min", fmt.Sprint(v.Reserved))
	}
	for _, o := range extraConfig(v) {
		line(o.GetOptionValue().Key, fmt.Sprint(o.GetOptionValue().Value))
	}
	return b.String()
}
