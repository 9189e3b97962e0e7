package answers

import (
	"slices"
	"strings"
)

// A Key documents one key of the file. The table of keys is the one source of defaults, of the limits that Load
// holds, of the schema and of the comments in a saved file.
type Key struct {
	Path     string          // "nic.speed", "vms[].ip", "esxi.addresses{}" for the values of a map
	Doc      string          // what it means, one line
	Default  string          // as written in YAML; "": the zero value
	ByMode   map[Mode]string // defaults that differ by mode
	Enum     []string
	Min, Max int    // both 0: no limit
	Required bool   // no default can be right
	Hint     string // what to write instead of a bad value
	Mode     Mode   // "": every mode; else the only mode that reads it
}

// Keys returns every key in the order of the file.
func Keys() []Key {
	keys := fixedKeys()
	after := slices.IndexFunc(keys, func(k Key) bool { return k.Path == "pvrdma" })
	return slices.Insert(keys, after, railKeys(keys)...)
}

// railKeys are the keys of rails: those of nic and switch below each, and their own.
func railKeys(keys []Key) []Key {
	out := []Key{
		{Path: "rails", Doc: "Instead of nic and switch, where hosts have several RDMA pNICs: each rail takes one of each host."},
		{Path: "rails[].name", Doc: "name of the rail", Required: true, Hint: "write letters, digits, dots and dashes, 31 at most: rail-1"},
	}
	for _, k := range keys {
		if !strings.HasPrefix(k.Path, "nic") && !strings.HasPrefix(k.Path, "switch") {
			continue
		}
		switch k.Path {
		case "switch.name":
			k.Default, k.Doc = "", `"": RDMA-DVS; with several rails RDMA-DVS-1, RDMA-DVS-2, ..`
		case "switch.portgroup":
			k.Default, k.Doc = "", `"": RDMA-PG; with several rails RDMA-PG-1, RDMA-PG-2, ..`
		}
		k.Path = "rails[]." + k.Path
		out = append(out, k)
	}
	return append(out,
		Key{Path: "rails[].sriov", Doc: "Virtual functions of this rail's pNIC."},
		Key{Path: "rails[].sriov.vfs", Doc: "VFs of this rail's pNIC; 0: sriov.vfs", Min: 0, Max: 127},
		Key{Path: "rails[].network", Doc: "where VMs with ip alone have their address on this rail, with the same number as ip; \"\": the network after that of the rail before",
			Hint: "write an IPv4 network with its prefix: 192.168.51.0/24"},
		Key{Path: "rails[].optional", Doc: "hosts without a pNIC for this rail leave it out; false: they are refused", Default: "false"},
	)
}

func fixedKeys() []Key {
	return []Key{
		{Path: "apiVersion", Doc: "shape of this file", Default: APIVersion, Enum: []string{APIVersion}},
		{Path: "mode", Doc: "pvrdma | sriov | gpudirect", Enum: []string{string(PVRDMA), string(SRIOV), string(GPUDirect)}, Required: true},

		{Path: "vcenter", Doc: "Where the vCenter is. The password is asked for, or comes from RDMA_SETUP_PASSWORD, --password-file or --password-stdin."},
		{Path: "vcenter.url", Doc: "https://HOST/sdk", Hint: "write https://vcenter.example.com/sdk"},
		{Path: "vcenter.username", Doc: "account"},
		{Path: "vcenter.thumbprint", Doc: "SHA-256 of its certificate; \"\": verified by the system's certificate authorities",
			Hint: "write the 32 bytes of the SHA-256 thumbprint as hexadecimal digits with colons"},

		{Path: "hosts", Doc: "Which ESXi hosts take part."},
		{Path: "hosts.datacenter", Doc: "\"\": the only one"},
		{Path: "hosts.cluster", Doc: "\"\": all in the datacenter"},
		{Path: "hosts.names", Doc: "[]: every connected host"},
		{Path: "hosts.names[]", Doc: "name of a host as vCenter has it"},

		{Path: "nic", Doc: "How the RDMA pNIC is known. Any mix; it must pick exactly one per host among those that are up."},
		{Path: "nic.speed", Doc: "link speed, 100G; \"\": any", Hint: "write a number and G or M: 100G, 25G"},
		{Path: "nic.macs", Doc: "{host: MAC}"},
		{Path: "nic.macs{}", Doc: "MAC address of the pNIC", Hint: "write six bytes in hexadecimal: 0c:42:a1:00:00:01"},
		{Path: "nic.driver", Doc: "name of the ESXi driver; \"\": any"},
		{Path: "nic.device", Doc: "vmnic2 or a PCI address, the same on every host; \"\": any", Hint: "write vmnic2 or 0000:3b:00.0"},
		{Path: "nic.slot", Doc: "PCI address of the card without function, 0000:3b:00, the same on every host; \"\": any", Hint: "write 0000:3b:00"},
		{Path: "nic.numa", Doc: "NUMA node of the pNIC; \"\": any", Hint: "write a number: 0, 1"},
		{Path: "nic.position", Doc: "which of the pNICs that the other keys describe, by PCI address: 1 is the first; 0: any", Default: "0", Min: 0, Max: 64},

		{Path: "switch", Doc: "The distributed switch (DVS) that carries RDMA and nothing else."},
		{Path: "switch.name", Doc: "completed when it is ours, made when it is missing", Default: "RDMA-DVS"},
		{Path: "switch.portgroup", Doc: "port group of the RDMA adapters", Default: "RDMA-PG"},
		{Path: "switch.version", Doc: "\"\": newest that all hosts carry", Hint: "write a version that vCenter offers, as 8.0.3"},
		{Path: "switch.uplinks", Doc: "uplinks of each host, not of VMs; RDMA wants one", Default: "1", Min: 1, Max: 32},
		{Path: "switch.mtu", Doc: "bytes; 9000 gives the RDMA MTU 4096, 1500 gives 1024", Default: "9000", Min: 1280, Max: 9190},
		{Path: "switch.vlan", Doc: "0: untagged", Default: "0", Min: 0, Max: 4094},

		{Path: "pvrdma", Doc: "Paravirtual RDMA.", Mode: PVRDMA},
		{Path: "pvrdma.vmknic", Doc: "vmknic of every host that carries the control traffic (TCP 28250)", Default: "vmk0",
			Hint: "write the bare name, vmk0, without quotes inside it", Mode: PVRDMA},
		{Path: "pvrdma.vmknic.name", Doc: "where hosts differ, written below vmknic: that of all hosts that names does not list", Mode: PVRDMA},
		{Path: "pvrdma.vmknic.names", Doc: "{host: vmknic}", Mode: PVRDMA},
		{Path: "pvrdma.vmknic.names{}", Doc: "vmknic of this host", Mode: PVRDMA},
		{Path: "pvrdma.vmknic.create", Doc: "create a vmknic for PVRDMA on every host that names does not list, instead of naming one", Mode: PVRDMA},
		{Path: "pvrdma.vmknic.create.portgroup", Doc: "distributed port group of the vmknics; created on the RDMA switch when it is missing", Mode: PVRDMA},
		{Path: "pvrdma.vmknic.create.vlan", Doc: "VLAN of that port group; 0: untagged", Default: "0", Min: 0, Max: 4094, Mode: PVRDMA},
		{Path: "pvrdma.vmknic.create.network", Doc: "IPv4 network of the vmknics", Hint: "write it like 10.1.0.0/24", Mode: PVRDMA},
		{Path: "pvrdma.vmknic.create.start", Doc: "address of the first host; the others, by name, take the next free ones",
			Hint: "write it like 10.1.0.11", Mode: PVRDMA},
		{Path: "pvrdma.allow_no_hca", Doc: "true: VMs on hosts without an RDMA card are set up too, for RDMA on one host and TCP between hosts; false: such hosts are refused",
			Default: "false", Mode: PVRDMA},
		{Path: "pvrdma.protocol", Doc: "rocev2 | rocev1", Default: "rocev2", Enum: []string{"rocev2", "rocev1"}, Mode: PVRDMA},

		{Path: "qos", Doc: "How loss is avoided. pfc costs a reboot of each host and acts on every port of the same driver."},
		{Path: "qos.lossless", Doc: "pfc | pause | none; default pfc for sriov, else none", Default: "none",
			ByMode: map[Mode]string{SRIOV: "pfc"}, Enum: []string{"pfc", "pause", "none"}},
		{Path: "qos.priority", Doc: "PFC priority, as on the switch", Default: "3", Min: 0, Max: 7},
		{Path: "qos.dscp", Doc: "DSCP of RDMA traffic; DSCP / 8 is the priority", Default: "26", Min: 0, Max: 63},
		{Path: "qos.ecn", Doc: "congestion notification", Default: "true"},

		{Path: "sriov", Doc: "Virtual functions.", Mode: SRIOV},
		{Path: "sriov.vfs", Doc: "VFs of the chosen pNIC", Default: "8", Min: 1, Max: 127, Mode: SRIOV},
		{Path: "sriov.components",
			Doc: "datastore paths of VIBs and offline bundles, absolute; for clusters that an image manages, URLs of offline bundles from which vCenter can fetch them", Mode: SRIOV},
		{Path: "sriov.components[]", Doc: "/vmfs/volumes/DATASTORE/FILE, or https://SERVER/COMPONENT_VERSION_BUILD.zip",
			Hint: "write the path as ESXi sees it: /vmfs/volumes/DATASTORE/FILE.zip. For a cluster that an image manages, write the URL of a " +
				"web server that vCenter reaches, or import the file in the vSphere Client (Lifecycle Manager, Import Updates) and leave it out"},
		{Path: "sriov.reset_advanced_pci", Doc: "where a card's firmware is set, set ADVANCED_PCI_SETTINGS=0 too: tuned PCI values are lost", Default: "false", Mode: SRIOV},
		{Path: "sriov.firmware", Doc: "{PSID: file}: firmware that the RDMA cards get where theirs is older, by the id of the board (PSID); cannot be undone. {}: none",
			Mode: SRIOV},
		{Path: "sriov.firmware{}", Doc: "/vmfs/volumes/DATASTORE/FILE.bin or [DATASTORE] FILE.bin; the file keeps its name, which has the version: fw-...-rel-16_35_8008-....bin",
			Hint: "write the path as ESXi sees it, with the name that the vendor gave the file: /vmfs/volumes/DATASTORE/fw-ConnectX5-rel-16_35_8008-MCX556A-ECU_Ax.bin"},

		{Path: "gpudirect", Doc: "GPU and NIC in one VM.", Mode: GPUDirect},
		{Path: "gpudirect.gpus", Doc: "{VM: [PCI address, ..]}, or {VM: {profile: grid_a100d-80c, count: 1}} for vGPUs; {}: every free GPU", Mode: GPUDirect},
		{Path: "gpudirect.gpus{}", Doc: "PCI addresses of the GPUs of this VM, or its vGPUs", Hint: "write [3d:00.0], or {profile: grid_a100d-80c, count: 1}"},
		{Path: "gpudirect.gpus{}[]", Doc: "PCI address", Hint: "write the address as ESXi prints it: 0000:3d:00.0"},
		{Path: "gpudirect.gpus{}.profile", Doc: "profile of vGPU, as rdma-setup discover lists it"},
		{Path: "gpudirect.gpus{}.count", Doc: "vGPUs of this profile; 0: 1", Max: 16},
		{Path: "gpudirect.nic",
			Doc:     "passthrough | sriov | pvrdma (a PVRDMA adapter beside the GPUs, without peer-to-peer; the same as mode pvrdma with gpudirect.gpus)",
			Default: "passthrough", Enum: []string{"passthrough", "sriov", NICPVRDMA}, Mode: GPUDirect},
		{Path: "gpudirect.backing", Doc: "fixed | dynamic; dynamic keeps HA restart, and ESXi chooses which device of the make", Default: "fixed",
			Enum: []string{"fixed", "dynamic"}, Mode: GPUDirect},
		{Path: "gpudirect.mmio", Doc: "kb | minimal | guide | GB", Default: "kb", Hint: "write kb, minimal, guide or a power of two in GB, as 256", Mode: GPUDirect},
		{Path: "gpudirect.allow_p2p", Doc: "pciPassthru.allowP2P", Default: "true", Mode: GPUDirect},
		{Path: "gpudirect.relax_acs", Doc: "pciPassthru.RelaxACSforP2P", Default: "true", Mode: GPUDirect},
		{Path: "gpudirect.ats",
			Doc: "switch ATS on in the RDMA card's firmware (ConnectX-6 and later), over the ESXi shell, before the reboot that gives the card to its VM", Default: "false", Mode: GPUDirect},
		{Path: "gpudirect.driver", Doc: "packages that bring the NVIDIA driver into guests without one, or the path of its .run file there; []: it must be there", Mode: GPUDirect},
		{Path: "gpudirect.driver[]", Doc: "package of the guest's repositories, as nvidia-headless-570-server-open", Hint: "write the name of a package"},
		{Path: "gpudirect.perftest", Doc: "source of perftest, as the guests see it, to be built with CUDA where there is none; \"\": GPU memory is measured only where it is there",
			Hint: "write the path in the guests: /mnt/share/perftest-24.10.0-0.65.tar.gz", Mode: GPUDirect},

		{Path: "gpudirect.models", Doc: "{vendor:device: {framebuffer: GB, bar: GB}}: models of GPU that the table lacks, by PCI ids as 10de:2fff", Mode: GPUDirect},
		{Path: "gpudirect.models{}", Doc: "size of this model"},
		{Path: "gpudirect.models{}.framebuffer", Doc: "memory in GB", Max: 1024},
		{Path: "gpudirect.models{}.bar", Doc: "BAR1 in GB, a power of two; 0: the smallest that holds the memory", Max: 1024},

		{Path: "esxi", Doc: "The shell of hosts, only where the vSphere API is not enough."},
		{Path: "esxi.user", Doc: "account", Default: "root"},
		{Path: "esxi.port", Doc: "SSH port", Default: "22", Min: 1, Max: 65535},
		{Path: "esxi.addresses", Doc: "{host: address[:port]} where the inventory name does not resolve"},
		{Path: "esxi.addresses{}", Doc: "address[:port]", Hint: "write 10.0.0.1, 10.0.0.1:22 or [fd00::1]:22"},

		{Path: "vms", Doc: "Each VM: name (or inventory path), ip of the RDMA interface (or adapters: [{ip, portgroup}], with rails [{rail, ip}]), and how its guest is reached."},
		{Path: "vms[].name", Doc: "name or inventory path", Required: true},
		{Path: "vms[].ip", Doc: "address of the RDMA interface; with several rails that of the first, and rails[].network has those of the others; " +
			"or dhcp (not with GPUDirect): as the DHCP server of the RDMA network says, without its routes and DNS servers",
			Hint: "write an IPv4 address with its prefix: 192.168.50.11/24; or dhcp"},
		{Path: "vms[].adapters", Doc: "instead of ip, where a VM has several RDMA adapters"},
		{Path: "vms[].adapters[].rail", Doc: "name of the rail, where there are rails"},
		{Path: "vms[].adapters[].ip", Doc: "address of this adapter, or dhcp", Hint: "write an IPv4 address with its prefix: 192.168.50.11/24; or dhcp"},
		{Path: "vms[].adapters[].portgroup", Doc: "\"\": the port group of the switch, or of the rail"},
		{Path: "vms[].group", Doc: "VMs of one group are never off at the same time"},
		{Path: "vms[].hardware", Doc: "keep | upgrade (to the lowest version that the mode needs; cannot be undone) | 14; \"\": keep",
			Hint: "write keep, upgrade or a number such as 14"},
		{Path: "vms[].trust", Doc: "trusted | untrusted; \"\": trusted. An untrusted VM gets no VF of a card whose firmware has a published vulnerability that users of a VF can reach",
			Enum: []string{"", "trusted", "untrusted"}},
		{Path: "vms[].guest", Doc: "how the guest is reached"},
		{Path: "vms[].guest.address", Doc: "\"\": what VMware Tools reports", Hint: "write an address or a name, the port apart"},
		{Path: "vms[].guest.port", Doc: "SSH port", Default: "22", Min: 1, Max: 65535},
		{Path: "vms[].guest.user", Doc: "\"\": as for ssh"},
		{Path: "vms[].guest.manage", Doc: "false: the VM gets its adapter alone, its guest is not logged in to (an appliance); ip may be left out then. Unset: true"},
		{Path: "vms[].guest.install", Doc: "guest.install of this VM; unset: guest.install"},
		{Path: "vms[].guest.persist", Doc: "guest.persist of this VM; unset: guest.persist"},

		{Path: "tuning", Doc: "What makes VMs answer evenly; each takes resources of the host for this VM alone."},
		{Path: "tuning.reserve_cpu", Doc: "reserve vCPUs x MHz of a core", Default: "false"},
		{Path: "tuning.latency", Doc: "normal | high; high gives each vCPU a core of its own and reserves the CPU in full", Default: "normal", Enum: []string{"normal", "high"}},
		{Path: "tuning.numa", Doc: "none | nic; nic binds the VM to the NUMA node of the host's RDMA pNIC (numa.nodeAffinity)", Default: "none", Enum: []string{"none", "nic"}},

		{Path: "guest", Doc: "What may be done inside guests."},
		{Path: "guest.install", Doc: "install packages", Default: "true"},
		{Path: "guest.persist", Doc: "make modules come back after a reboot", Default: "true"},
		{Path: "guest.ofed", Doc: "archives of MLNX_OFED, or packages doca-host, as the guests see them (a share), each guest takes its own; []: the drivers of the distribution stay"},
		{Path: "guest.ofed[]", Doc: "/PATH/MLNX_OFED_LINUX-VERSION-SYSTEM-ARCH.tgz or /PATH/doca-host_VERSION-SYSTEM_ARCH.deb",
			Hint: "write the path in the guests, the archive's name as NVIDIA gave it: /mnt/share/MLNX_OFED_LINUX-24.10-1.1.4.0-rhel9.4-x86_64.tgz"},

		{Path: "guest.environment",
			Doc: "with qos.lossless pfc, tell UCX and NCCL the traffic class by environment variables of every login (and of images that are built); without it " +
				"only applications that use RDMA-CM are in the class", Default: "false"},

		{Path: "container", Doc: "Containers, from which RDMA is measured beside the guest itself; docker, podman or nerdctl must be there."},
		{Path: "container.image", Doc: "name of the image, with its tag; \"\": none", Hint: "write a name with a tag, as tensorrt-pvrdma:20.12"},
		{Path: "container.base", Doc: "image of NGC to build it from, with the distribution's RDMA libraries in place of MLNX_OFED's; \"\": it is there",
			Hint: "write an image with its registry and tag, as nvcr.io/nvidia/tensorrt:20.12-py3"},

		{Path: "confirmed", Doc: "Settings that cannot be detected; please confirm."},
		{Path: "confirmed.switch_pfc", Doc: "the physical switch has PFC, trust and ECN as in qos", Default: "false"},
		{Path: "confirmed.above_4g", Doc: "\"Above 4G decoding\" is on in the BIOS", Default: "false"},

		{Path: "measure", Doc: "What is measured in the end."},
		{Path: "measure.pairs", Doc: "ring | all", Default: "ring", Enum: []string{"ring", "all"}},
		{Path: "measure.bandwidth", Doc: "ib_send_bw", Default: "true"},
		{Path: "measure.latency", Doc: "ib_send_lat", Default: "true"},
		{Path: "measure.load",
			Doc: "none | incast | all; several senders at once: incast (each VM receives once), all (also one half of the VMs with the other, both ways); asks " +
				"first on a real fabric", Default: "none", Enum: []string{"none", "incast", "all"}},
		{Path: "measure.cross_rail", Default: "none", Enum: []string{"none", "all"},
			Doc: "none | all; with several rails, whether an address of one answers in the network of another: rails of different VLANs must not reach each other"},
		{Path: "measure.repeat", Doc: "how often each test runs; the median of each size counts", Default: "1", Min: 1, Max: 100},
		{Path: "measure.perftest", Default: OwnPerftest,
			Hint: "write distribution, the path in the guests (/mnt/share/perftest-24.10.0-0.65.tar.gz), or https://HOST/FILE; http://HOST/FILE only with #sha256=HEX behind it",
			Doc:  "distribution | PATH or URL of perftest's source, as the guests see it: built in all guests where their own releases differ, and removed by a rollback"},
		{Path: "measure.link_gbps", Doc: "what the links carry, where that is not the speed of the host ports (shaped or virtual links); \"\": their speed",
			Hint: "write Gb/s as a number: 25, 0.5"},

		{Path: "run", Doc: "How the work is spread."},
		{Path: "run.parallel", Doc: "targets at once", Default: "16", Min: 1, Max: 256},
		{Path: "run.lock", Doc: "which runs are excluded: local: other runs of this state directory; shared: runs of all operators, by a lock on each " +
			"cluster that vCenter shows", Default: "local", Enum: []string{"local", "shared"}},
		{Path: "run.reboot", Doc: "waves of host reboots"},
		{Path: "run.reboot.max_unavailable", Doc: "hosts down at once", Default: "1", Min: 1, Max: 64},
		{Path: "run.reboot.timeout", Doc: "a host that is not back by then stops the waves", Default: "30m", Hint: "write a time as 30m or 1h"},
		{Path: "run.reboot.canary", Doc: "one host first: the others follow when it and its VMs are back with their VFs", Default: "true"},
		{Path: "run.bystanders", Doc: "VMs that the answers do not list, on hosts that reboot: drs (moved by DRS, else refused) | migrate (by vMotion) | refuse | shutdown",
			Default: "drs", Enum: []string{"drs", "migrate", "refuse", "shutdown"}},
		{Path: "run.window", Doc: "when hosts and VMs may go out of service"},
		{Path: "run.window.until", Doc: "no wave of hosts or VMs starts that cannot be finished and undone by this time of day, in the time zone of this machine; \"\": no end",
			Hint: "write a time of day in quotes, as \"05:00\""},
		{Path: "run.power", Doc: "how many VMs are off at the same time"},
		{Path: "run.power.max_unavailable", Doc: "VMs that are off at once, over all hosts: a number or all; \"\": 4, at most a quarter of vms, at least 1",
			Hint: "write a number or all"},
		{Path: "run.power.canary", Doc: "change one VM first, and the others only after its RDMA port is active", Default: "true"},
	}
}

// DefaultFor returns the default of the key in a mode, as written in YAML.
func (k Key) DefaultFor(m Mode) string {
	if d, ok := k.ByMode[m]; ok {
		return d
	}
	return k.Default
}

// keyTable finds keys by their path.
type keyTable map[string]Key

func newKeyTable() keyTable {
	t := keyTable{}
	for _, k := range Keys() {
		t[k.Path] = k
	}
	return t
}

// pattern turns the path of a value (vms[2].ip, nic.macs{esx-01}) into that of its key (vms[].ip, nic.macs{}).
func pattern(path string) string {
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		b.WriteByte(path[i])
		if path[i] == '[' {
			for i+1 < len(path) && path[i+1] != ']' {
				i++
			}
		}
		if path[i] == '{' {
			if end := strings.LastIndexByte(path, '}'); end > i {
				i = end - 1
			}
		}
	}
	return b.String()
}
