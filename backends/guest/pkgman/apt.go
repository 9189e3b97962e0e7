package pkgman

import (
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// apt uses apt-get through assets/scripts/apt-get.sh.
func apt() Manager {
	run := func(what string) func([]string) string {
		return func(names []string) string { return ssh.Script("apt-get.sh", append([]string{what}, names...)...) }
	}
	return Manager{
		Repair: ssh.Script("apt-get.sh", "repair"), Update: ssh.Script("apt-get.sh", "update"),
		Install: run("install"), Simulate: run("would-install"), Remove: run("remove"), SimulateRemove: run("would-remove"),
		WouldInstall: func(out string) []string {
			var names []string
			for line := range strings.SplitSeq(out, "\n") { // "Inst perftest (4.5 Debian:12/stable [amd64])"; an upgrade has [old version] third
				if w := strings.Fields(line); len(w) > 2 && w[0] == "Inst" && !strings.HasPrefix(w[2], "[") {
					names = append(names, w[1])
				}
			}
			return names
		},
		Exact: func(versions map[string]string) string { return run("exact")(each(versions, "=")) },
		WouldMove: func(out string) []string {
			var names []string
			for line := range strings.SplitSeq(out, "\n") {
				if w := strings.Fields(line); len(w) > 2 && w[0] == "Inst" && strings.HasPrefix(w[2], "[") {
					names = append(names, w[1])
				}
			}
			return names
		},
		WouldRemove: func(out string) []string {
			var names []string
			for line := range strings.SplitSeq(out, "\n") {
				if w := strings.Fields(line); len(w) > 1 && (w[0] == "Remv" || w[0] == "Purg") {
					names = append(names, w[1])
				}
			}
			return names
		},
		Unavailable: "Enable the repository that has them (on Ubuntu: universe), or point the guest at a mirror.",
	}
}
