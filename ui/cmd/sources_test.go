package cmd

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/checks/catalogue"
)

// publications are the titles that checks cite, and where each is published. A check cites a title, then its section after a comma
// or in brackets. Several titles are separated by semicolons, or by ", " before another title of this list. $1 and $2 are groups of
// the title.
var publications = []struct{ title, where string }{
	{`RoCE SR-IOV Setup and Performance Study on vSphere 7\.x \(VMware, 2022\)`, "by title"},
	{`PVRDMA and vSphere Bitfusion \(VMware, 2021\)`, "by title"},
	{`RDG: RoCE accelerated ML and HPC on Kubernetes with vGPU and PVRDMA \(NVIDIA/Mellanox, 2019\)`, "by title"},
	{`Reference Deployment Guide for RoCE accelerated HPC or ML applications with GPUDirect RDMA on vSphere 6\.7 \(NVIDIA/Mellanox\)`,
		"by title"},
	{`Scaling HPC and ML with GPUDirect RDMA on vSphere 6\.7 \(VMware\)`, "by title"},
	{`Broadcom KB (\d{6})\b`, "https://knowledge.broadcom.com/external/article/$1"},
	{`Broadcom KB \d+`, "a number of the old VMware knowledge base; search for it on https://knowledge.broadcom.com"},
	{`Broadcom KB that links to it`, "https://knowledge.broadcom.com; search for a00121002"},
	{`Dell KB (\d+)`, "https://www.dell.com/support/kbdoc/$1"},
	{`HPE (a00121002)`, "https://support.hpe.com/hpesc/public/docDisplay?docId=${1}en_us"},
	{`HPE: GPU memory sizing`, "https://support.hpe.com, by title"},
	{`Mellanox DOC-\d+`, "a number of the former Mellanox community; now in the NVIDIA knowledge base, by topic"},
	{`netplan bug (\d+)`, "https://bugs.launchpad.net/netplan/+bug/$1"},
	{`netplan reference`, "https://netplan.readthedocs.io"},
	{`nccl issue (\d+)`, "https://github.com/NVIDIA/nccl/issues/$1"},
	{`openucx issues (\d+), (\d+)`, "https://github.com/openucx/ucx/issues/$1, https://github.com/openucx/ucx/issues/$2"},
	{`sriov-network-operator PR (\d+)`, "https://github.com/k8snetworkplumbingwg/sriov-network-operator/pull/$1"},
	{`bosh-vsphere-cpi PR (\d+)`, "https://github.com/cloudfoundry/bosh-vsphere-cpi-release/pull/$1"},
	{`ansible-vsphere-gos-validation issue (\d+)`, "https://github.com/vmware/ansible-vsphere-gos-validation/issues/$1"},
	{`vhpc-toolkit`, "https://github.com/vmware-archive/vhpc-toolkit"},
	{`ESX-LISA`, "https://github.com/VirtQE-S1/ESX-LISA"},
	{`vmw_pvrdma driver`, "Linux, drivers/infiniband/hw/vmw_pvrdma"},
	{`Linux iboe_get_mtu`, "Linux, include/rdma/ib_addr.h"},
	{`PCI Express bandwidth as the Linux kernel prints it`, "Linux, drivers/pci/pci.c, pcie_print_link_status"},
	{`dcb-pfc\(8\)`, "manual pages of iproute2"},
	{`vSphere API|vSphere Web Services API`, "https://developer.broadcom.com, vSphere Web Services API"},
	{`vSphere Networking|vSphere Storage|vSphere Virtual Machine Administration`, "https://techdocs.broadcom.com, VMware vSphere, by title"},
	{`Exposing Hardware Accelerators using Assignable Hardware \(VMware\)`, "https://core.vmware.com, by title"},
	{`VMware vSphere 7\.0 ESXi STIG`, "https://public.cyber.mil/stigs, by title"},
	{`release notes of Intel's RDMA driver for ESXi`, "https://www.intel.com, by title"},
	{`NCCL documentation`, "https://docs.nvidia.com/deeplearning/nccl"},
	{`NVIDIA`, "https://docs.nvidia.com, by title"},
	{`Linux kernel, ip-sysctl.rst`, "Linux, Documentation/networking/ip-sysctl.rst"},
	{`Red Hat Solution (\d+)`, "https://access.redhat.com/solutions/$1"},
	{`rules of DSCP`, "RFC 2474 and RFC 3168: DSCP and ECN are the two parts of one byte"},
}

// sourceReference returns the table of cited sources. It fails the test if a citation names an unknown publication.
func sourceReference(t *testing.T) string {
	type row struct {
		where            string
		sections, checks []string
	}
	rows, ours := map[string]*row{}, map[string]bool{}
	own := regexp.MustCompile(`\bours$|\bunverified$`)
	var titles []string
	for _, p := range publications[:5] {
		titles = append(titles, p.title)
	}
	next := regexp.MustCompile(`, (` + strings.Join(titles, "|") + `)`)
	for _, c := range catalogue.Checks() {
		for part := range strings.SplitSeq(next.ReplaceAllString(c.Source, "; $1"), ";") {
			part = strings.TrimSpace(part)
			if own.MatchString(part) {
				ours[c.ID] = true
				continue
			}
			title, section, where := cited(part)
			if where == "" {
				t.Errorf("%s cites %q, which is none of the publications in this file", c.ID, part)
				continue
			}
			if rows[title] == nil {
				rows[title] = &row{where: where}
			}
			r := rows[title]
			r.checks = append(r.checks, c.ID)
			if section != "" && !slices.Contains(r.sections, section) {
				r.sections = append(r.sections, section)
			}
		}
	}
	var b strings.Builder
	b.WriteString("| title | sections | where | checks |\n|---|---|---|---|\n")
	for _, title := range slices.Sorted(maps.Keys(rows)) {
		r := rows[title]
		slices.Sort(r.sections)
		slices.Sort(r.checks)
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", title, strings.Join(r.sections, "; "), r.where, strings.Join(slices.Compact(r.checks), ", "))
	}
	fmt.Fprintf(&b, "\nLimits, bands or details of these checks are our own or unverified: %s.\n",
		strings.Join(slices.Sorted(maps.Keys(ours)), ", "))
	return b.String()
}

// cited splits a citation into title and section, and returns where the title is published; "" for an unknown one.
func cited(part string) (title, section, where string) {
	for _, p := range publications {
		re := regexp.MustCompile(`^(?:` + p.title + `)`)
		at := re.FindStringSubmatchIndex(part)
		if at == nil {
			continue
		}
		where = string(re.ExpandString(nil, p.where, part, at))
		title, section = part[:at[1]], strings.Trim(part[at[1]:], " ,:()")
		if strings.HasSuffix(p.where, "by title") && !strings.HasSuffix(title, ")") || strings.HasSuffix(title, ": ") ||
			strings.HasPrefix(part, "dcb-") {
			title, section, _ = strings.Cut(part, ", ") // only the publisher is known: all of it is the title
			if strings.HasPrefix(part, "NVIDIA, ") || strings.HasPrefix(part, "dcb-") {
				title, section = part, ""
			}
		}
		return title, section, where
	}
	return "", "", ""
}
