package sizing

import "fmt"

// Overhead of a RoCE v2 frame in bytes: Ethernet 14, FCS 4, preamble and gap 20, IPv4 20, UDP 8, BTH 12, ICRC 4.
const roceOverhead = 82

// vlanTag is what a VLAN tag adds.
const vlanTag = 4

// NewSwitchMTU is the largest MTU, in bytes, with which a distributed switch is created.
const NewSwitchMTU = 9000

// IBMTU returns the RDMA MTU that an Ethernet MTU allows, in bytes; 0 below 352. Linux include/rdma/ib_addr.h, iboe_get_mtu: the
// largest of 256 to 4096 that leaves room for GRH 40, UDP 8, BTH 12, XRC 4, atomic 28, ICRC 4.
func IBMTU(eth int) int {
	for _, m := range []int{4096, 2048, 1024, 512, 256} {
		if eth-96 >= m {
			return m
		}
	}
	return 0
}

// Goodput returns the maximum share of RoCE v2 payload on a link at an RDMA MTU: mtu/(mtu+82), with a VLAN tag mtu/(mtu+86). For
// 4096 it is 0.980, for 1024 it is 0.926.
func Goodput(ibMTU int, vlan bool) float64 {
	if ibMTU <= 0 {
		return 0
	}
	over := roceOverhead
	if vlan {
		over += vlanTag
	}
	return float64(ibMTU) / float64(ibMTU+over)
}

// PingPayload returns the payload of a ping that fills a frame of the MTU without fragmentation: 28 bytes less over IPv4 (8972
// for 9000), 48 less over IPv6.
func PingPayload(mtu int, ipv6 bool) int {
	if ipv6 {
		return mtu - 48
	}
	return mtu - 28
}

// PCIeGbps returns the capacity of a slot in one direction, in Gbps after line coding: Gen3 x16 126.0, Gen4 x16 252.0 (kernel
// text "available PCIe bandwidth"), Gen5 x16 504.1. 0 for an unknown generation.
func PCIeGbps(gen, lanes int) float64 {
	perLane := map[int]float64{1: 2.0, 2: 4.0, 3: 8.0 * 128 / 130, 4: 16.0 * 128 / 130, 5: 32.0 * 128 / 130}
	return perLane[gen] * float64(lanes)
}

// PCIeUsable is the share of PCIeGbps that is available to payload (85 to 90 %, unverified).
const PCIeUsable = 0.87

// PFCMask returns the value of pfctx and pfcrx that protects a priority: bit i is priority i, so 3 is 0x08 (Mellanox DOC-2581).
func PFCMask(priority int) (uint8, error) {
	if priority < 0 || priority > 7 {
		return 0, fmt.Errorf("priority %d is not between 0 and 7", priority)
	}
	return 1 << priority, nil
}

// TrafficClass returns the IP traffic class for a DSCP: DSCP << 2, with the ECN-capable bit if congestion notification is on: 26
// is 104, with ECN 106.
func TrafficClass(dscp int, ecn bool) int {
	tc := dscp << 2
	if ecn {
		tc |= 2
	}
	return tc
}
