//go:build e2e

package realtest_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// args describe a q35 machine whose slots give the NICs the names they have on vSphere: ens160, ens192 and ens224.
func (m *machine) args() []string {
	rxe := "on"
	nic := "vmxnet3,id=rdma,netdev=wire,bus=slot192,mac=" + m.mac
	memory := []string{"-machine", "q35,usb=off"}
	function := []string{"-drive", "file=" + filepath.Join(m.image, "mpi.ext4") + ",if=none,id=mpi,format=raw,readonly=on", "-device",
		"virtio-blk-pci,drive=mpi"}
	if m.pvrdma {
		rxe = "off"
		nic += ",addr=00.0,multifunction=on"
		memory = []string{"-object", "memory-backend-ram,id=ram,size=512M,share=on", "-machine", "q35,usb=off,memory-backend=ram"}
		function = []string{"-chardev", "socket,id=mad,path=" + m.at("mad"),
			"-device", "pvrdma,bus=slot192,addr=00.1,ibdev=verbs0,ibport=1,netdev=lo,mad-chardev=mad"}
	}
	if m.rail2 != "" {
		nic = strings.Replace(nic, "netdev=wire", "netdev=port1", 1)
		function = append(function, "-netdev", "hubport,id=uplink,hubid=1,netdev=wire", "-netdev", "hubport,id=port1,hubid=1", "-netdev",
			"hubport,id=port2,hubid=1",
			"-device", "pcie-root-port,id=slot224,chassis=3,slot=224", "-device", "vmxnet3,id=rdma2,netdev=port2,bus=slot224,mac="+m.rail2)
	}
	return append(append(memory,
		"-name", m.name, "-accel", accelerator(), "-cpu", processor(), "-smp", "1", "-m", "512", "-nodefaults", "-vga", "none", "-display",
		"none",
		"-global", "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off",
		"-kernel", filepath.Join(m.image, "vmlinux"), "-initrd", filepath.Join(m.image, "initrd"),
		"-append", "root=LABEL=guest rw console=ttyS0 quiet mitigations=off random.trust_cpu=on nowatchdog panic=1",
		"-drive", "file="+m.at("disk")+",if=none,id=disk,format=qcow2,cache=unsafe", "-device", "virtio-blk-pci,drive=disk",
		"-device", "virtio-rng-pci",
		"-device", "pcie-root-port,id=slot160,chassis=1,slot=160", "-device", "pcie-root-port,id=slot192,chassis=2,slot=192",
		"-netdev", fmt.Sprintf("user,id=management,restrict=on,ipv6=off,net=10.0.2.0/24,hostfwd=tcp:127.0.0.1:%d-:22", m.port),
		"-device", "vmxnet3,netdev=management,bus=slot160,mac=00:50:56:80:0f:01",
		"-netdev", "dgram,id=wire,local.type=unix,local.path="+m.at("wire")+",remote.type=unix,remote.path="+filepath.Join(m.peer, "wire"),
		"-device", nic,
		"-fw_cfg", "name=opt/guest/name,string="+m.name, "-fw_cfg", "name=opt/guest/rxe,string="+rxe,
		"-fw_cfg", "name=opt/guest/hostkey,file="+m.at("hostkey"), "-fw_cfg", "name=opt/guest/key,file="+m.at("key"),
		"-serial", "file:"+m.at("console"), "-qmp", "unix:"+m.at("qmp")+",server=on,wait=off"), function...)
}

var virtual = regexp.MustCompile(`(?m)^flags\s*:.* (vmx|svm)\b`)

// accelerator returns KVM if the processor supports it, otherwise emulation. A machine that is virtual itself may have /dev/kvm and
// stop in the middle of the guest's boot.
func accelerator() string {
	if cpu, err := os.ReadFile("/proc/cpuinfo"); err == nil && virtual.Match(cpu) {
		if f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0); err == nil {
			f.Close()
			return "kvm"
		}
	}
	return "tcg,thread=multi,tb-size=256"
}

// processor returns, for emulation, a CPU without features for which the guest would load drivers: that would cost seconds of its
// boot.
func processor() string {
	if accelerator() == "kvm" {
		return "max"
	}
	return "Nehalem"
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
