package generate

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/assets"
)

// An OSU is a script that runs the MPI micro-benchmarks of the guide in the guests (RoCE SR-IOV Setup and Performance Study on
// vSphere 7.x, VMware, 2022, section 3.2: OSU osu_mbw_mr and osu_alltoall, mean of five runs) and compares them with a baseline.
type OSU struct {
	Hosts  []netip.Addr // of the guests, one rank each; the first one runs the script
	Device string       // RDMA device in the guests; "": chosen by UCX
	Class  int          // IP traffic class; 0: not marked
	Runs   int          // 0: five
}

// Counts returns the numbers of VMs to measure: those of the guide that are available, and all VMs. They are even, because
// osu_mbw_mr uses pairs.
func (s OSU) Counts() []int {
	var out []int
	for _, n := range []int{2, 4, 8, 12, 16} {
		if n <= len(s.Hosts) {
			out = append(out, n)
		}
	}
	if all := len(s.Hosts) &^ 1; !slices.Contains(out, all) {
		out = append(out, all)
	}
	return out
}

// Check returns an error for settings that cannot be measured.
func (s OSU) Check() error {
	if len(s.Hosts) < 2 {
		return fmt.Errorf("%d guests: an MPI benchmark needs two", len(s.Hosts))
	}
	seen := map[netip.Addr]bool{}
	for _, h := range s.Hosts {
		if !h.Is4() || seen[h] {
			return fmt.Errorf("%s is not an IPv4 address, or appears twice", h)
		}
		seen[h] = true
	}
	if s.Runs < 0 || s.Runs > 100 {
		return fmt.Errorf("%d runs: expected 1 to 100", s.Runs)
	}
	return NCCL{Path: SRIOV, Device: s.Device, GID: -1, Class: s.Class}.Check()
}

// Script writes a POSIX shell script.
func (s OSU) Script(o Origin) (string, error) {
	if err := s.Check(); err != nil {
		return "", err
	}
	hosts := make([]string, len(s.Hosts))
	for i, h := range s.Hosts {
		hosts[i] = h.String()
	}
	counts := make([]string, 0, 6)
	for _, n := range s.Counts() {
		counts = append(counts, strconv.Itoa(n))
	}
	options := "--mca pml ucx"
	if s.Device != "" {
		options += " -x UCX_NET_DEVICES=" + s.Device + ":1"
	}
	if s.Class > 0 {
		options += " -x UCX_IB_TRAFFIC_CLASS=" + strconv.Itoa(s.Class)
	}
	runs := cmp.Or(s.Runs, 5)
	return "#!/bin/sh\n" + o.Comment("#") + strings.NewReplacer(
		"@HOSTS@", strings.Join(hosts, " "), "@COUNTS@", strings.Join(counts, " "), "@OPTIONS@", options, "@RUNS@", strconv.Itoa(runs),
	).Replace(assets.Template("osu.sh")), nil
}
