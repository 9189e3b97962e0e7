package containers

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"

	"github.com/rdma-setup/rdma-setup/wizard/generate"
)

// A Host runs containers that those of other hosts must be able to reach.
type Host struct {
	Name       string
	Address    netip.Addr   // of the host
	Containers netip.Prefix // network of its docker0
}

// Bridge returns the address of docker0: the first of the network.
func (h Host) Bridge() netip.Prefix {
	return netip.PrefixFrom(h.Containers.Addr().Next(), h.Containers.Bits())
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$`)

// Spread assigns each host its own part of a network for containers, /24 in the order of the hosts, except the first one
// (Reference Deployment Guide for RoCE accelerated HPC or ML applications with GPUDirect RDMA on vSphere 6.7, NVIDIA/Mellanox:
// every host needs a different docker0 network, or routes between containers are impossible).
func Spread(all netip.Prefix, hosts []Host) ([]Host, error) {
	const bits = 24
	if !all.IsValid() || !all.Addr().Is4() || all.Bits() > bits-1 || all.Masked() != all {
		return nil, fmt.Errorf("%s is not an IPv4 network with room for one /%d per host: write it like 172.30.0.0/16", all, bits)
	}
	if room := 1<<(bits-all.Bits()) - 1; len(hosts) > room {
		return nil, fmt.Errorf("%s has room for %d hosts, not for %d", all, room, len(hosts))
	}
	seen := map[string]bool{}
	out := make([]Host, len(hosts))
	base := all.Addr().As4()
	for i, h := range hosts {
		switch {
		case !hostName.MatchString(h.Name):
			return nil, fmt.Errorf("%q is not a valid host name", h.Name)
		case !h.Address.Is4():
			return nil, fmt.Errorf("%s: %s is not an IPv4 address", h.Name, h.Address)
		case all.Contains(h.Address):
			return nil, fmt.Errorf("%s: its address %s lies in the containers' network %s", h.Name, h.Address, all)
		case seen[h.Name] || seen[h.Address.String()]:
			return nil, fmt.Errorf("%s or its address %s is named twice", h.Name, h.Address)
		}
		seen[h.Name], seen[h.Address.String()] = true, true
		n := (uint32(base[0])<<24 | uint32(base[1])<<16 | uint32(base[2])<<8) + uint32(i+1)<<8
		h.Containers = netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), 0}), bits)
		out[i] = h
	}
	return out, nil
}

// A Forward is the policy for packets to containers that Docker would drop.
type Forward string

// The policies. The guide allows everything.
const (
	ForwardContainers Forward = "containers" // only between the containers' networks
	ForwardAll        Forward = "all"        // iptables -P FORWARD ACCEPT
	ForwardLeave      Forward = "leave"      // as it is
)

// Routes writes a systemd unit for the host self: routes to the containers of the others, forwarding, and firewall rules.
// Stopping it removes the routes and rules.
func Routes(self string, all netip.Prefix, hosts []Host, forward Forward, o generate.Origin) (string, error) {
	found := false
	var start, stop []string
	for _, h := range hosts {
		if h.Name == self {
			found = true
			continue
		}
		start = append(start, fmt.Sprintf("/sbin/ip route replace %s via %s", h.Containers, h.Address))
		stop = append(stop, fmt.Sprintf("-/sbin/ip route del %s via %s", h.Containers, h.Address))
	}
	if !found {
		return "", fmt.Errorf("%q is none of the hosts", self)
	}
	switch forward {
	case ForwardLeave:
	case ForwardContainers:
		rule := fmt.Sprintf("DOCKER-USER -s %s -d %[1]s -j ACCEPT", all)
		start = append(start, fmt.Sprintf("/bin/sh -c '/sbin/iptables -C %s 2>/dev/null || /sbin/iptables -I %[1]s'", rule))
		stop = append(stop, "-/sbin/iptables -D "+rule)
		// Docker rewrites the source address of packets from docker0 to the host's address (Docker documentation, Bind container
		// ports to the host; Bridge network driver, enable_ip_masquerade), which the other host's rule does not accept.
		own := fmt.Sprintf("POSTROUTING -s %s -d %[1]s -j ACCEPT", all)
		start = append(start, fmt.Sprintf("/bin/sh -c '/sbin/iptables -t nat -C %s 2>/dev/null || /sbin/iptables -t nat -I %[1]s'", own))
		stop = append(stop, "-/sbin/iptables -t nat -D "+own)
	case ForwardAll:
		start = append(start, "/sbin/iptables -P FORWARD ACCEPT")
		stop = append(stop, "-/sbin/iptables -P FORWARD DROP")
	default:
		return "", fmt.Errorf("%q is not a forwarding mode: containers, all or leave", forward)
	}
	var b strings.Builder
	b.WriteString(o.Comment("#"))
	b.WriteString("# " + generate.Plain("/etc/systemd/system/rdma-setup-container-routes.service on "+self) +
		", owner root, mode 0644. Then: systemctl daemon-reload;\n")
	b.WriteString("# systemctl enable --now rdma-setup-container-routes.service. Undo: systemctl disable --now, and delete the file.\n")
	if forward == ForwardAll {
		b.WriteString("# It lets every packet through that this host could forward, not only those of containers.\n")
	}
	b.WriteString(`[Unit]
Description=Routes to the containers of the other hosts
Wants=network-online.target
After=network-online.target docker.service
PartOf=docker.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/sbin/sysctl -w net.ipv4.ip_forward=1
`)
	for _, line := range start {
		b.WriteString("ExecStart=" + line + "\n")
	}
	for _, line := range stop {
		b.WriteString("ExecStop=" + line + "\n")
	}
	b.WriteString("\n[Install]\nWantedBy=multi-user.target docker.service\n")
	return b.String(), nil
}
