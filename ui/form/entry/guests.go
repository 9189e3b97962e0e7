package entry

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// Guests are the VMs as they are being answered for: their RDMA addresses and how one logs in.
type Guests struct {
	VM     map[string]answers.VM
	Member func(id string) bool // the VM takes part: nobody else may have its address
}

// Completed is a VM with the defaults and a free address where it has none yet.
func Completed(id string, vm answers.VM, known bool, free func() netip.Prefix) answers.VM {
	if !known {
		vm = answers.DefaultVM(id)
	}
	if !vm.IP.Given() && len(vm.Adapters) == 0 {
		vm.IP.Prefix = free()
	}
	return vm
}

// FreeAddresses returns one address after the other that follows the highest in use.
func FreeAddresses(vms []answers.VM) func() netip.Prefix {
	next := netip.MustParsePrefix("192.168.50.10/24")
	for _, v := range vms {
		if v.IP.IsValid() && (!next.Masked().Contains(v.IP.Addr()) || next.Addr().Less(v.IP.Addr())) {
			next = v.IP.Prefix
		}
	}
	return func() netip.Prefix {
		next = netip.PrefixFrom(next.Addr().Next(), next.Bits())
		return next
	}
}

// AddressText is the address of a VM, or those of its adapters.
func AddressText(v answers.VM) string {
	if len(v.Adapters) == 0 {
		return v.IP.String()
	}
	var ips []string
	for _, a := range v.Adapters {
		ips = append(ips, a.IP.String())
	}
	return strings.Join(ips, ",")
}

// LoginText is "user@address:port" without what is left open.
func LoginText(v answers.VM) string {
	port := ""
	if v.Guest.Port != 22 && v.Guest.Port != 0 {
		port = ":" + strconv.Itoa(v.Guest.Port)
	}
	if v.Guest.Address+port == "" {
		return v.Guest.User
	}
	return v.Guest.User + "@" + v.Guest.Address + port
}

// SetAddress checks an address typed for one VM and keeps it.
func (g Guests) SetAddress(id, text string) error {
	vm := g.VM[id]
	var ip answers.Address
	err := ip.UnmarshalText([]byte(text))
	switch {
	case len(vm.Adapters) > 0:
		return errors.New("this VM has several RDMA adapters: change them in the answers file")
	case err != nil:
		return fmt.Errorf("%q: want an address with its prefix length, 192.168.50.11/24, or dhcp", text)
	}
	for other, v := range g.VM {
		if other != id && g.Member(other) && v.IP.IsValid() && v.IP.Addr() == ip.Addr() {
			return fmt.Errorf("%s is the address of %s", ip.Addr(), other)
		}
	}
	vm.IP = ip
	return g.keep(id, vm)
}

// SetLogin takes "user", "user@address", "user@address:port" or nothing; without a user the SSH settings decide, without
// an address VMware Tools are asked.
func (g Guests) SetLogin(id, text string) error {
	vm := g.VM[id]
	user, address, _ := strings.Cut(text, "@")
	vm.Guest = answers.VMGuest{User: user, Address: address, Port: 22}
	if host, port, ok := cutPort(address); ok {
		n, err := strconv.Atoi(port)
		if err != nil || n < 1 || n > 65535 {
			return fmt.Errorf("%q is no port: want a number from 1 to 65535", port)
		}
		vm.Guest.Address, vm.Guest.Port = host, n
	}
	return g.keep(id, vm)
}

// cutPort cuts a port off an address; an IPv6 address without brackets has none.
func cutPort(s string) (host, port string, ok bool) {
	i := strings.LastIndex(s, ":")
	if i < 0 || strings.Count(s, ":") > 1 && !strings.HasPrefix(s, "[") {
		return s, "", false
	}
	return strings.Trim(s[:i], "[]"), s[i+1:], true
}

// keep takes a VM as edited when nothing is wrong with it.
func (g Guests) keep(id string, vm answers.VM) error {
	alone := answers.Default(answers.PVRDMA)
	alone.VMs = []answers.VM{vm}
	if err := Problem(alone, "vms[0]"); err != nil {
		return err
	}
	g.VM[id] = vm
	return nil
}
