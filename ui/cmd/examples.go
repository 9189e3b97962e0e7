package cmd

import (
	"cmp"
	"strings"

	"github.com/spf13/cobra"
)

// A description is the help of a command, except for its one-line summary and its flags.
type description struct {
	long     string // "": the command has a paragraph of its own
	examples string // one per line
}

// descriptions are keyed by command, without the program's name.
var descriptions = map[string]description{
	"": {examples: `rdma-setup --lab
rdma-setup -f answers.yaml`},
	"apply": {examples: `rdma-setup apply -f answers.yaml --limit esx-01,esx-02
rdma-setup apply --plan plan.json --yes -o json`},
	"check": {
		long: `check reads vCenter, the hosts and the guests, judges what it finds by the checks that check --list prints, and names the first
broken link of the chain from the BIOS to the guests. With -f it also compares with the answers. It changes nothing, unless
--fix or --save-baseline is given. Exit code 0: OK; 1: warnings; 2: a check failed; 3: nothing could be checked.`,
		examples: `rdma-setup check -f answers.yaml
rdma-setup check --quick -o prometheus --out /var/lib/node_exporter/rdma.prom
rdma-setup check --explain HOST-NTP-004`,
	},
	"collect": {examples: `rdma-setup collect -f answers.yaml --out site.tgz
rdma-setup check --bundle site.tgz`},
	"deploy": {examples: `rdma-setup deploy bitfusion-server-4.5.ova --name bitfusion-01 --network 'Network 1=VM Network' --rdma RDMA-PG
rdma-setup deploy appliance.ova --network 'VM Network=Production' --dry-run`},
	"discover": {
		long: `discover lists the hosts with their pNICs, GPUs and VMs, says which pNICs can carry RDMA, and gives the reason where one cannot.
The role Read-only is enough. It changes nothing.`,
		examples: `rdma-setup discover
rdma-setup discover --speed 100G --rdma -o json`,
	},
	"lab": {examples: `rdma-setup lab --dir D
rdma-setup lab --dir D --scenario rails --hosts 8 --vms 16
rdma-setup lab --bundle site.tgz --dir D`},
	"man": {
		long: `man prints the manual page of rdma-setup in the format of man(7). With --dir it writes one page for each command, for packages.`,
		examples: `rdma-setup man
rdma-setup man --dir /usr/local/share/man/man1`,
	},
	"parse": {examples: `rdma-setup parse ibv_devinfo devinfo.txt
rdma-setup parse ib_send_bw client.txt --judge --mode sriov --link-gbps 100`},
	"plan": {
		long: `plan reads vCenter, the hosts and the guests, runs the preflight and prints each change with its reason: which hosts reboot,
which VMs are off and for how long, and what cannot be undone. It changes nothing. A plan that is saved with --out can be
applied later exactly as it was printed; apply refuses it when anything has changed since.`,
		examples: `rdma-setup plan -f answers.yaml --out plan.json
rdma-setup plan -f answers.yaml --diff plan.json --detailed-exitcode`,
	},
	"rehearse": {examples: `rdma-setup rehearse -f answers.yaml
rdma-setup rehearse -f answers.yaml --bundle site.tgz -o json`},
	"report": {
		long: `report prints the report of a run again: the verdict, the first broken link, the measurements and what was changed. RUN is an id
from rdma-setup runs; without it the latest run is taken. It reads the state directory only and needs no vCenter.`,
		examples: `rdma-setup report
rdma-setup report 20260314-092653-pvrdma-abcd -o html --out report.html`,
	},
	"resume": {examples: `rdma-setup resume
rdma-setup resume 20260314-092653-pvrdma-abcd --yes`},
	"rollback": {examples: `rdma-setup rollback
rdma-setup rollback 20260314-092653-pvrdma-abcd --on-conflict keep`},
	"runs": {
		long: `runs lists the runs of the state directory, the oldest first: its id, how it ended, its mode and vCenter, and when it began.`,
		examples: `rdma-setup runs
rdma-setup runs -o json`,
	},
	"schema": {
		long: `schema prints the JSON Schema (draft 2020-12) of the answers file, or of what plan, check, report and apply print with -o json (of apply: of
each line). Editors with a YAML language server complete and check the keys of answers by it.`,
		examples: `rdma-setup schema > answers.schema.json
rdma-setup schema report > report.schema.json`,
	},
	"version": {
		long: `version prints the release, the commit and the Go release that built it. With -o spdx it prints the SBOM of all modules, with
-o licenses their licences.`,
		examples: `rdma-setup version
rdma-setup version -o licenses`,
	},

	"generate": {
		long: `generate prints files that apply writes, or that you install yourself: roles, switch configurations, network files, container
and Kubernetes files. Nothing is sent to vCenter, a host or a guest.`,
		examples: `rdma-setup generate answers > answers.yaml
rdma-setup generate role --mode pvrdma`,
	},
	"generate answers": {
		long: `Print an answers file with the common keys, their defaults and what they mean. Keys that you do not need can be deleted.
All keys: rdma-setup help answers`,
		examples: `rdma-setup generate answers > answers.yaml
rdma-setup generate answers --mode sriov > answers.yaml`,
	},
	"generate container-routes": {examples: `rdma-setup generate container-routes --host gpu-01=192.168.50.11 --host gpu-02=192.168.50.12 --for gpu-01
rdma-setup generate container-routes --host a=10.0.0.1 --host b=10.0.0.2 --for b --subnets 10.244.0.0/16 --forward leave`},
	"generate daemon-json": {examples: `rdma-setup generate daemon-json --merge /etc/docker/daemon.json --bip 172.30.1.1/24 --mtu 9000
rdma-setup generate daemon-json --host gpu-01=192.168.50.11 --host gpu-02=192.168.50.12 --for gpu-02 --nvidia`},
	"generate docker-setup": {examples: `rdma-setup generate docker-setup > docker-setup.sh
rdma-setup generate docker-setup --nvidia --distribution > docker-setup.sh`},
	"generate dockerfile": {examples: `rdma-setup generate dockerfile > Dockerfile
rdma-setup generate dockerfile --base nvcr.io/nvidia/pytorch:23.10-py3 --traffic-class 106 > Dockerfile`},
	"generate horovod": {examples: `rdma-setup generate horovod -f answers.yaml > horovod.sh
rdma-setup generate horovod --host 192.168.50.11 --host 192.168.50.12 --tcp > horovod-tcp.sh`},
	"generate ifcfg": {examples: `rdma-setup generate ifcfg -f answers.yaml --vm vm-01
rdma-setup generate ifcfg --interface ens224f0 --mac 00:50:56:aa:bb:01 --ip 192.168.50.11/24`},
	"generate interfaces": {examples: `rdma-setup generate interfaces -f answers.yaml
rdma-setup generate interfaces --interface ens224f0 --mac 00:50:56:aa:bb:01 --ip dhcp`},
	"generate monitoring": {examples: `rdma-setup generate monitoring --dir monitoring
rdma-setup generate monitoring --textfiles /var/lib/node_exporter --every 1h --dir monitoring`},
	"generate mpijob": {examples: `rdma-setup generate mpijob -f answers.yaml > job.yaml
rdma-setup generate mpijob --workers 4 --gpus 2 --rdma-resource rdma/hca_shared_devices_a -- python train.py`},
	"generate nccl-topo": {examples: `rdma-setup generate nccl-topo -f answers.yaml --vm vm-01 > topo.xml
rdma-setup generate nccl-topo -f answers.yaml --vm vm-01 --link-speed '32.0 GT/s PCIe' > topo.xml`},
	"generate netplan": {examples: `rdma-setup generate netplan -f answers.yaml
rdma-setup generate netplan --interface ens224 --mac 00:50:56:aa:bb:01 --ip 192.168.50.11/24 --mtu 9000`},
	"generate networkd": {examples: `rdma-setup generate networkd -f answers.yaml --vm vm-01
rdma-setup generate networkd --interface ens224 --mac 00:50:56:aa:bb:01 --ip 192.168.50.11/24`},
	"generate nmconnection": {examples: `rdma-setup generate nmconnection -f answers.yaml --vm vm-01
rdma-setup generate nmconnection --interface ens224 --mac 00:50:56:aa:bb:01 --ip 192.168.50.11/24 --portgroup RDMA-PG`},
	"generate osu": {examples: `rdma-setup generate osu -f answers.yaml > osu.sh
rdma-setup generate osu --host 192.168.50.11 --host 192.168.50.12 --runs 3 > osu.sh`},
	"generate role": {
		long: `Print the commands that create a vCenter role with exactly the privileges that a mode needs, for govc or PowerCLI. Assign the
role to the account at the root of the inventory, or on one datacenter if the answers set hosts.datacenter, with "propagate to
children". run.lock: shared and clusters that an image manages need it at the root.`,
		examples: `rdma-setup generate role --mode pvrdma --tool govc
rdma-setup generate role --mode sriov --tool powercli --name roce-operator`,
	},
	"generate switch": {examples: `rdma-setup generate switch --os onyx -f answers.yaml
rdma-setup generate switch --os cumulus --ports swp1,swp2 --vlan 150`},
	"generate systemd": {
		long: `Print a systemd unit for a guest that unloads the RDMA driver and loads it again after each boot. On some Ubuntu
releases no RDMA device appears after a boot until that is done; VMware's guide names it as a known issue.`,
		examples: `rdma-setup generate systemd > rdma-reload.service
rdma-setup generate systemd --module vmw_pvrdma`,
	},
}

func describe(c *cobra.Command) {
	_, path, _ := strings.Cut(c.CommandPath(), " ")
	d := descriptions[path]
	c.Long = cmp.Or(c.Long, d.long)
	if d.examples != "" {
		c.Example = "  " + strings.ReplaceAll(d.examples, "\n", "\n  ")
	}
	for _, sub := range c.Commands() {
		describe(sub)
	}
}
