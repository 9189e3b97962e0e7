package plain_test

import (
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/plain"
)

// Hosts with several GPUs and several cards have a matrix of the paths between them; identical hosts share one.
func TestAffinityMatrix(t *testing.T) {
	pair := func(nic, device string, path backends.Nearness, node bool) backends.Pair {
		return backends.Pair{NIC: nic, Device: device, Path: path, SameNUMA: node}
	}
	host := func(name string) backends.Host {
		return backends.Host{Name: name, State: "connected", GPUs: []backends.GPU{
			{PCI: "0000:39:00.0", Pairs: []backends.Pair{
				pair("0000:38:00.0", "vmnic2", backends.OneSwitch, true), pair("0000:98:00.0", "", backends.DifferentRoots, false)}},
			{PCI: "0000:59:00.0", Pairs: []backends.Pair{
				pair("0000:98:00.0", "", backends.PathUnknown, false), pair("0000:38:00.0", "vmnic2", backends.DifferentRoots, true)}},
		}}
	}
	one := host("esx-03")
	one.GPUs = one.GPUs[:1]
	var b strings.Builder
	if err := plain.Inventory(&b, &backends.Inventory{Hosts: []backends.Host{host("esx-01"), host("esx-02"), one}}); err != nil {
		t.Fatal(err)
	}
	want := "\nGPU x NIC of esx-01, esx-02\nGPU           vmnic2  0000:98:00.0\n0000:39:00.0  PIX     SYS\n0000:59:00.0  NODE    ?\nPIX, " +
		"PXB: below one root port"
	if got := b.String(); !strings.Contains(got, want) || strings.Count(got, "GPU x NIC") != 1 {
		t.Errorf("want\n%s\nin\n%s", want, got)
	}
}
