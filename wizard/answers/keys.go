package answers

import (
	"slices"
	"strings"
)

// A Key documents one key of the file. The table of keys is the single source of defaults, of the limits that Load enforces, of
// the schema and of the comments in a saved file.
type Key struct {
	Path     string          // "nic.speed", "vms[].ip", "esxi.addresses{}" for the values of a map
	Doc      string          // its meaning in one line
	Default  string          // as written in YAML; "": the zero value
	ByMode   map[Mode]string // defaults that differ by mode
	Enum     []string
	Min, Max int    // both 0: no limit
	Required bool   // it has no sensible default
	Hint     string // what to write instead of an invalid value
	Mode     Mode   // "": every mode; else the only mode that uses it
}

// Keys returns every key in the order of the file.
func Keys() []Key {
	keys := fixedKeys()
	after := slices.IndexFunc(keys, func(k Key) bool { return k.Path == "pvrdma" })
	return slices.Insert(keys, after, railKeys(keys)...)
}

// railKeys returns the keys of rails: those of nic and switch, and their own.
func railKeys(keys []Key) []Key {
	out := []Key{
		{Path: "rails", Doc: "Instead of nic and switch, for hosts with several RDMA pNICs. Each rail uses one pNIC of each host."},
		{Path: "rails[].name", Doc: "name of the rail", Required: true, Hint: "write letters, digits, dots and dashes, 31 at most: rail-1"},
	}
	for _, k := range keys {
		if !strings.HasPrefix(k.Path, "nic") && !strings.HasPrefix(k.Path, "switch") {
			continue
		}
		switch k.Path {
		case "switch.name":
			k.Default, k.Doc = "", `"": RDMA-DVS; with several rails RDMA-DVS-1, RDMA-DVS-2 and so on`
		case "switch.portgroup":
			k.Default, k.Doc = "", `"": RDMA-PG; with several rails RDMA-PG-1, RDMA-PG-2 and so on`
		}
		k.Path = "rails[]." + k.Path
		out = append(out, k)
	}
	return append(out,
		Key{Path: "rails[].sriov", Doc: "Virtual functions of this rail's pNIC."},
		Key{Path: "rails[].sriov.vfs", Doc: "VFs of this rail's pNIC; 0: sriov.vfs", Min: 0, Max: 127},
		Key{Path: "rails[].network",
			Doc: "network of this rail for VMs that set only ip: they get the same host number as in ip; \"\": the network after that of the " +
				"previous rail",
			Hint: "write an IPv4 network with its prefix: 192.168.51.0/24"},
		Key{Path: "rails[].optional", Doc: "true: hosts without a pNIC for this rail are set up without the rail; false: they are refused",
			Default: "false"},
	)
}

func fixedKeys() []Key {
	return []Key{
		{Path: "apiVersion", Doc: "version of this file's format", Default: APIVersion, Enum: []string{APIVersion}},
		{Path: "mode", Doc: "pvrdma | sriov | gpudirect", Enum: []string{string(PVRDMA), string(SRIOV), string(GPUDirect)}, Required: true},

		{Path: "vcenter",
			Doc: "The vCenter to connect to. The password is never stored here: it is prompted for, or read from RDMA_SETUP_PASSWORD, " +
				"--password-file or --password-stdin."},
		{Path: "vcenter.url", Doc: "address, https://HOST/sdk", Hint: "write https://vcenter.example.com/sdk"},
		{Path: "vcenter.username", Doc: "account"},
		{Path: "vcenter.thumbprint", Doc: "SHA-256 of its certificate; \"\": verified by the system's certificate authorities",
			Hint: "write the 32 bytes of the SHA-256 thumbprint as hexadecimal digits with colons"},

		{Path: "hosts", Doc: "Which ESXi hosts take part."},
		{Path: "hosts.datacenter", Doc: "name or inventory path; \"\": the only one"},
		{Path: "hosts.cluster", Doc: "name or inventory path; \"\": all in the datacenter"},
		{Path: "hosts.names", Doc: "[]: every connected host"},
		{Path: "hosts.names[]", Doc: "name of a host as vCenter shows it"},

		{Path: "nic",
			Doc: "How to recognize the RDMA pNIC. Combine keys as needed: together they must match exactly one pNIC with a link on each host."},
		{Path: "nic.speed", Doc: "link speed, 100G; \"\": any", Hint: "write a number and G or M: 100G, 25G"},
		{Path: "nic.macs", Doc: "{host: MAC}, for hosts where the other keys match several pNICs"},
		{Path: "nic.macs{}", Doc: "MAC address of the pNIC", Hint: "write six bytes in hexadecimal: 0c:42:a1:00:00:01"},
		{Path: "nic.driver", Doc: "name of the ESXi driver; \"\": any"},
		{Path: "nic.device", Doc: "vmnic2 or a PCI address, the same on every host; \"\": any", Hint: "write vmnic2 or 0000:3b:00.0"},
		{Path: "nic.slot", Doc: "PCI address of the card without function, 0000:3b:00, the same on every host; \"\": any",
			Hint: "write 0000:3b:00"},
		{Path: "nic.numa", Doc: "NUMA node of the pNIC; \"\": any", Hint: "write a number: 0, 1"},
		{Path: "nic.position", Doc: "which of the pNICs that match the other keys, in order of PCI address: 1 is the first; 0: any", Default: "0",
			Min: 0, Max: 64},

		{Path: "switch", Doc: "The distributed switch (DVS) that carries RDMA and nothing else."},
		{Path: "switch.name", Doc: "name of the DVS; created if it is missing", Default: "RDMA-DVS"},
		{Path: "switch.portgroup", Doc: "port group of the RDMA adapters", Default: "RDMA-PG"},
		{Path: "switch.version", Doc: "version of a new DVS; \"\": the newest that all hosts support",
			Hint: "write a version that vCenter offers, such as 8.0.3"},
		{Path: "switch.uplinks", Doc: "number of uplinks per host; RDMA needs one", Default: "1", Min: 1, Max: 32},
		{Path: "switch.mtu", Doc: "bytes; 9000 gives the RDMA MTU 4096, 1500 gives 1024", Default: "9000", Min: 1280, Max: 9190},
		{Path: "switch.vlan", Doc: "0: untagged", Default: "0", Min: 0, Max: 4094},

		{Path: "pvrdma", Doc: "Paravirtual RDMA.", Mode: PVRDMA},
		{Path: "pvrdma.vmknic", Doc: "vmknic of every host that carries the control traffic (TCP 28250 to 28761)", Default: "vmk0",
			Hint: "write the bare name, vmk0, without quotes inside it", Mode: PVRDMA},
		{Path: "pvrdma.vmknic.name", Doc: "if hosts differ, write name and names below vmknic: the vmknic of all hosts that are not in names",
			Mode: PVRDMA},
		{Path: "pvrdma.vmknic.names", Doc: "{host: vmknic}", Mode: PVRDMA},
		{Path: "pvrdma.vmknic.names{}", Doc: "vmknic of this host", Mode: PVRDMA},
		{Path: "pvrdma.vmknic.create", Doc: "create a vmknic for PVRDMA on every host that names does not list, instead of naming one",
			Mode: PVRDMA},
		{Path: "pvrdma.vmknic.create.portgroup", Doc: "distributed port group of the vmknics; created on the RDMA switch when it is missing",
			Required: true, Mode: PVRDMA},
		{Path: "pvrdma.vmknic.create.vlan", Doc: "VLAN of that port group; 0: untagged", Default: "0", Min: 0, Max: 4094, Mode: PVRDMA},
		{Path: "pvrdma.vmknic.create.network", Doc: "IPv4 network of the vmknics", Required: true, Hint: "write it like 10.1.0.0/24",
			Mode: PVRDMA},
		{Path: "pvrdma.vmknic.create.start", Doc: "address of the first host; the others, by name, take the next free ones", Required: true,
			Hint: "write it like 10.1.0.11", Mode: PVRDMA},
		{Path: "pvrdma.allow_no_hca",
			Doc: "true: VMs on hosts without an RDMA card are set up too, for RDMA on one host and TCP between hosts; false: such hosts " +
				"are refused",
			Default: "false", Mode: PVRDMA},
		{Path: "pvrdma.protocol", Doc: "rocev2 | rocev1", Default: "rocev2", Enum: []string{"rocev2", "rocev1"}, Mode: PVRDMA},

		{Path: "qos", Doc: "How packet loss is avoided. pfc needs one reboot of each host and affects all ports of the same driver."},
		{Path: "qos.lossless", Doc: "pfc | pause | none; default pfc for sriov, else none", Default: "none",
			ByMode: map[Mode]string{SRIOV: "pfc"}, Enum: []string{"pfc", "pause", "none"}},
		{Path: "qos.priority", Doc: "PFC priority, as on the switch", Default: "3", Min: 0, Max: 7},
		{Path: "qos.dscp", Doc: "DSCP of RDMA traffic; DSCP / 8 is the priority", Default: "26", Min: 0, Max: 63},
		{Path: "qos.ecn", Doc: "explicit congestion notification", Default: "true"},

		{Path: "sriov", Doc: "Virtual functions.", Mode: SRIOV},
		{Path: "sriov.vfs", Doc: "VFs of the chosen pNIC", Default: "8", Min: 1, Max: 127, Mode: SRIOV},
		{Path: "sriov.components",
			Doc: "datastore paths of VIBs and offline bundles, absolute; for clusters that an image manages, URLs of offline bundles that vCenter " +
				"can fetch, or files on this computer", Mode: SRIOV},
		{Path: "sriov.components[]",
			Doc: "/vmfs/volumes/DATASTORE/FILE; https://SERVER/COMPONENT_VERSION_BUILD.zip or /DIRECTORY/COMPONENT_VERSION_BUILD.zip",
			Hint: "write /vmfs/volumes/DATASTORE/FILE.zip; for a cluster that an image manages, https://SERVER/FILE.zip or an absolute path on " +
				"this computer"},
		{Path: "sriov.reset_advanced_pci",
			Doc: "when firmware settings are changed, also set ADVANCED_PCI_SETTINGS=0; tuned PCI values of the card are lost", Default: "false",
			Mode: SRIOV},
		{Path: "sriov.firmware",
			Doc:  "{PSID: file}: firmware for RDMA cards whose firmware is older, by board id (PSID); cannot be undone. {}: none",
			Mode: SRIOV},
		{Path: "sriov.firmware{}",
			Doc: "/vmfs/volumes/DATASTORE/FILE.bin or [DATASTORE] FILE.bin; keep the name of the file, which contains the version: " +
				"fw-...-rel-16_35_8008-....bin",
			Hint: "write the path as ESXi sees it, with the name that the vendor gave the file: " +
				"/vmfs/volumes/DATASTORE/fw-ConnectX5-rel-16_35_8008-MCX556A-ECU_Ax.bin"},

		{Path: "gpudirect", Doc: "GPU and NIC in one VM.", Mode: GPUDirect},
		{Path: "gpudirect.gpus", Mode: GPUDirect,
			Doc: "{VM: [PCI address, ..]}, {VM: {profile: grid_a100d-80c, count: 1}} for vGPUs, or {VM: {group: NAME}} for the vGPUs of a vendor " +
				"device group; {}: every free GPU"},
		{Path: "gpudirect.gpus{}", Doc: "PCI addresses of the GPUs of this VM, or its vGPUs",
			Hint: "write [3d:00.0], {profile: grid_a100d-80c, count: 1}, or {group: NAME}"},
		{Path: "gpudirect.gpus{}[]", Doc: "PCI address", Hint: "write the address as ESXi prints it: 0000:3d:00.0"},
		{Path: "gpudirect.gpus{}.profile", Doc: "profile of vGPU, as rdma-setup discover lists it"},
		{Path: "gpudirect.gpus{}.count", Doc: "vGPUs of this profile; 0: 1", Max: 16},
		{Path: "gpudirect.gpus{}.group", Doc: "vendor device group of vGPUs, as rdma-setup discover lists it (vSphere 8 and later)"},
		{Path: "gpudirect.manager", Mode: GPUDirect,
			Doc: "NVIDIA vGPU Manager to install on hosts that lack it or have an older one: path of its VIB or offline bundle on a datastore; " +
				"for a cluster " +
				"that an image manages, the URL of its offline bundle, or a file on this computer; \"\": it is not installed",
			Hint: "write /vmfs/volumes/DATASTORE/FILE, or for a cluster that an image manages https://SERVER/COMPONENT_VERSION_BUILD.zip"},
		{Path: "gpudirect.nic",
			Doc: "passthrough | sriov | pvrdma (a PVRDMA adapter beside the GPUs, without peer-to-peer; the same as mode pvrdma with " +
				"gpudirect.gpus)",
			Default: "passthrough", Enum: []string{"passthrough", "sriov", NICPVRDMA}, Mode: GPUDirect},
		{Path: "gpudirect.backing", Doc: "fixed | dynamic; with dynamic, HA can restart the VM, and ESXi chooses among devices of the same model",
			Default: "fixed",
			Enum:    []string{"fixed", "dynamic"}, Mode: GPUDirect},
		{Path: "gpudirect.mmio",
			Doc:     "size of the MMIO window: kb (Broadcom KB 323402) | minimal (smallest that works) | guide (VMware's guide) | GB",
			Default: "kb", Hint: "write kb, minimal, guide or a power of two in GB, such as 256", Mode: GPUDirect},
		{Path: "gpudirect.allow_p2p", Doc: "pciPassthru.allowP2P", Default: "true", Mode: GPUDirect},
		{Path: "gpudirect.relax_acs", Doc: "pciPassthru.RelaxACSforP2P", Default: "true", Mode: GPUDirect},
		{Path: "gpudirect.ats",
			Doc: "enable ATS in the RDMA card's firmware (ConnectX-6 and later) through the ESXi shell, before the reboot that makes the card " +
				"available to its VM", Default: "false", Mode: GPUDirect},
		{Path: "gpudirect.driver",
			Doc: "packages that install the NVIDIA driver in guests without one, or the path of its .run file in the guests; []: it must already " +
				"be installed", Mode: GPUDirect},
		{Path: "gpudirect.driver[]", Doc: "package of the guest's repositories, as nvidia-headless-570-server-open",
			Hint: "write the name of a package"},
		{Path: "gpudirect.perftest",
			Doc: "path of perftest's source in the guests; built with CUDA in guests that lack such a perftest; \"\": GPU memory is measured " +
				"only in guests that have one",
			Hint: "write the path in the guests: /mnt/share/perftest-24.10.0-0.65.tar.gz", Mode: GPUDirect},

		{Path: "gpudirect.models",
			Doc:  "{vendor:device: {framebuffer: GB, bar: GB}}: GPU models that this program does not know, by PCI ids such as 10de:2fff",
			Mode: GPUDirect},
		{Path: "gpudirect.models{}", Doc: "size of this model"},
		{Path: "gpudirect.models{}.framebuffer", Doc: "memory in GB", Max: 1024},
		{Path: "gpudirect.models{}.bar", Doc: "BAR1 in GB, a power of two; 0: the smallest that holds the memory", Max: 1024},

		{Path: "esxi", Doc: "The shell of the hosts, used only where the vSphere API is not sufficient."},
		{Path: "esxi.user", Doc: "account", Default: "root"},
		{Path: "esxi.port", Doc: "SSH port", Default: "22", Min: 1, Max: 65535},
		{Path: "esxi.addresses",
			Doc: "{host: address[:port]} for hosts whose name in vCenter cannot be resolved"},
		{Path: "esxi.addresses{}", Doc: "address[:port]", Hint: "write 10.0.0.1, 10.0.0.1:22 or [fd00::1]:22"},

		{Path: "vms", Doc: "Each VM, for example {name: vm-01, ip: 192.168.50.11/24, guest: {user: ubuntu}}: name or inventory path, " +
			"address of the RDMA interface (or adapters: [{ip, portgroup}], with rails [{rail, ip}]), login of its guest."},
		{Path: "vms[].name", Doc: "name; the inventory path where other VMs have the name too", Required: true},
		{Path: "vms[].ip", Doc: "address of the RDMA interface; with several rails on the first one, rails[].network sets the others; " +
			"or dhcp (not with GPUDirect): from the DHCP server of the RDMA network, ignoring its routes and DNS servers",
			Hint: "write an IPv4 address with its prefix: 192.168.50.11/24; or dhcp"},
		{Path: "vms[].adapters", Doc: "instead of ip, for a VM with several RDMA adapters"},
		{Path: "vms[].adapters[].rail", Doc: "name of the rail, if rails are used"},
		{Path: "vms[].adapters[].ip", Doc: "address of this adapter, or dhcp",
			Hint: "write an IPv4 address with its prefix: 192.168.50.11/24; or dhcp"},
		{Path: "vms[].adapters[].portgroup", Doc: "\"\": the port group of the switch, or of the rail"},
		{Path: "vms[].group", Doc: "VMs of one group are never off at the same time"},
		{Path: "vms[].hardware", Doc: "keep | upgrade (to the lowest version that the mode needs; cannot be undone) | 14; \"\": keep",
			Hint: "write keep, upgrade or a number such as 14"},
		{Path: "vms[].trust",
			Doc: "trusted | untrusted; \"\": trusted. An untrusted VM gets no VF of a card whose firmware has a published vulnerability that " +
				"users of a VF can reach",
			Enum: []string{"", "trusted", "untrusted"}},
		{Path: "vms[].guest", Doc: "how to log in to the guest"},
		{Path: "vms[].guest.address", Doc: "address for SSH; \"\": the one that VMware Tools reports",
			Hint: "write an address or a name; the port has its own key"},
		{Path: "vms[].guest.port", Doc: "SSH port", Default: "22", Min: 1, Max: 65535},
		{Path: "vms[].guest.user", Doc: "account; \"\": the one that ssh would use"},
		{Path: "vms[].guest.manage",
			Doc: "false: only the VM's adapter is set up, nobody logs in to the guest (an appliance), and ip may be omitted. Unset: true"},
		{Path: "vms[].guest.install", Doc: "guest.install of this VM; unset: guest.install"},
		{Path: "vms[].guest.persist", Doc: "guest.persist of this VM; unset: guest.persist"},

		{Path: "tuning", Doc: "Settings for even latency. Each reserves resources of the host for the VM."},
		{Path: "tuning.reserve_cpu", Doc: "reserve vCPUs x MHz of a core", Default: "false"},
		{Path: "tuning.latency", Doc: "normal | high; high gives each vCPU a core of its own and reserves the CPU in full", Default: "normal",
			Enum: []string{"normal", "high"}},
		{Path: "tuning.numa", Doc: "none | nic; nic pins the VM to the NUMA node of the host's RDMA pNIC (numa.nodeAffinity)", Default: "none",
			Enum: []string{"none", "nic"}},

		{Path: "guest", Doc: "What rdma-setup may change inside guests."},
		{Path: "guest.install", Doc: "install packages", Default: "true"},
		{Path: "guest.persist", Doc: "load the modules after each reboot", Default: "true"},
		{Path: "guest.ofed",
			Doc: "paths in the guests (a share) of MLNX_OFED archives or doca-host packages; each guest uses the one for its release; []: keep " +
				"the distribution's drivers"},
		{Path: "guest.ofed[]", Doc: "/PATH/MLNX_OFED_LINUX-VERSION-SYSTEM-ARCH.tgz or /PATH/doca-host_VERSION-SYSTEM_ARCH.deb",
			Hint: "write the path in the guests, with NVIDIA's name of the archive: /mnt/share/MLNX_OFED_LINUX-24.10-1.1.4.0-rhel9.4-x86_64.tgz"},

		{Path: "guest.environment",
			Doc: "with qos.lossless pfc, set the traffic class for UCX and NCCL by environment variables of every login (and of images that are " +
				"built); without it " +
				"only applications that use RDMA-CM are in the traffic class", Default: "false"},

		{Path: "container", Doc: "Also measure RDMA from containers; docker, podman or nerdctl must be installed in the guests."},
		{Path: "container.image", Doc: "name of the image, with its tag; \"\": none", Hint: "write a name with a tag, as tensorrt-pvrdma:20.12"},
		{Path: "container.base",
			Doc:  "NGC image to build it from, with the distribution's RDMA libraries instead of MLNX_OFED's; \"\": the image already exists",
			Hint: "write an image with its registry and tag, as nvcr.io/nvidia/tensorrt:20.12-py3"},

		{Path: "confirmed", Doc: "Settings that cannot be detected; please confirm."},
		{Path: "confirmed.switch_pfc", Doc: "the physical switch has PFC, DSCP trust and ECN set as in qos", Default: "false"},
		{Path: "confirmed.above_4g", Doc: "\"Above 4G decoding\" is on in the BIOS", Default: "false"},

		{Path: "measure", Doc: "What is measured after the changes."},
		{Path: "measure.pairs", Doc: "ring | all", Default: "ring", Enum: []string{"ring", "all"}},
		{Path: "measure.bandwidth", Doc: "measure bandwidth (ib_send_bw)", Default: "true"},
		{Path: "measure.latency", Doc: "measure latency (ib_send_lat)", Default: "true"},
		{Path: "measure.load",
			Doc: "none | incast | all; load from several senders: incast (each VM is the receiver once), all (also between two halves of the VMs, " +
				"in both directions); asks " +
				"for consent on a real fabric", Default: "none", Enum: []string{"none", "incast", "all"}},
		{Path: "measure.cross_rail", Default: "none", Enum: []string{"none", "all"},
			Doc: "none | all; with several rails, test whether rails reach each other: rails in different VLANs must not"},
		{Path: "measure.repeat", Doc: "how often each test runs; the report uses the median for each message size", Default: "1", Min: 1,
			Max: 100},
		{Path: "measure.perftest", Default: OwnPerftest,
			Hint: "write distribution, the path in the guests (/mnt/share/perftest-24.10.0-0.65.tar.gz), or https://HOST/FILE; http://HOST/FILE " +
				"only with #sha256=HEX after it",
			Doc: "distribution | PATH or URL of perftest's source, valid in the guests; built in all guests if their own versions differ, removed " +
				"by a rollback"},
		{Path: "measure.link_gbps",
			Doc:  "capacity of the links in Gb/s, if it differs from the speed of the host ports (shaped or virtual links); \"\": that speed",
			Hint: "write Gb/s as a number: 25, 0.5"},

		{Path: "run", Doc: "How a run proceeds."},
		{Path: "run.parallel", Doc: "targets that are changed at the same time", Default: "16", Min: 1, Max: 256},
		{Path: "run.lock",
			Doc: "which other runs are locked out; local: runs of the same state directory; shared: runs of all operators, by a lock on each " +
				"cluster that vCenter shows", Default: "local", Enum: []string{"local", "shared"}},
		{Path: "run.reboot", Doc: "waves of host reboots"},
		{Path: "run.reboot.max_unavailable", Doc: "hosts that are down at the same time", Default: "1", Min: 1, Max: 64},
		{Path: "run.reboot.timeout", Doc: "a host that is not back by then stops the waves", Default: "30m", Hint: "write a time as 30m or 1h"},
		{Path: "run.reboot.canary", Doc: "reboot one host first; the others follow when it and its VMs are back with their VFs", Default: "true"},
		{Path: "run.bystanders",
			Doc: "VMs that the answers do not list, on hosts that reboot: drs (moved by DRS, else refused) | migrate (by vMotion) | refuse " +
				"| shutdown",
			Default: "drs", Enum: []string{"drs", "migrate", "refuse", "shutdown"}},
		{Path: "run.return_vms", Doc: "move VMs that DRS or vMotion moved because of a run back to their hosts at its end", Default: "false"},
		{Path: "run.window", Doc: "when hosts and VMs may be taken out of service"},
		{Path: "run.window.until",
			Doc: "time of day, in this machine's time zone; no wave of hosts or VMs starts unless it can finish and be undone by then; " +
				"\"\": no limit",
			Hint: "write a time of day in quotes, as \"05:00\""},
		{Path: "run.power", Doc: "how many VMs are off at the same time"},
		{Path: "run.power.max_unavailable",
			Doc: "VMs that are off at once, over all hosts: a number or all; \"\": 4, at most a quarter of vms, at least 1, or as many as " +
				"have to be off together",
			Hint: "write a number or all"},
		{Path: "run.power.canary", Doc: "change one VM first, and the others only after its RDMA port is active", Default: "true"},
		{Path: "run.power.canary_reboot", Doc: "restart the guest of the first VM once after its setup, where VMs are power-cycled; " +
			"the run stops with this one VM unless every interface comes back as it was", Default: "true"},
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

// pattern converts the path of a value (vms[2].ip, nic.macs{esx-01}) to that of its key (vms[].ip, nic.macs{}).
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
