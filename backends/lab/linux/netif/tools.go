package netif

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
)

func (c *Config) ethtool(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("S statistics")
	if err != nil || len(o.Args) != 1 {
		return p.Usage(1, errors.Join(err, errors.New("bad command line argument(s)")))
	}
	l, ok := c.Stack.Link(o.Args[0])
	if !ok || l.Name != o.Args[0] {
		fmt.Fprintf(p.Stderr, "netlink error: No such device\n")
		return 75
	}
	if o.Has("S", "statistics") {
		p.Printf("NIC statistics:\n     rx_packets: 90312\n     tx_packets: 88120\n")
		if l.HCA != nil && l.HCA.Priorities != nil {
			p.Printf("%s", l.HCA.Priorities())
		}
		return 0
	}
	return p.Usage(1, errors.New("the lab has ethtool -S only"))
}

// ss shows listening sockets, including that of the SSH server.
func (c *Config) ss(_ context.Context, p *sh.Proc) int {
	if _, err := p.Options("l t u n p a H 4 6 e m i s listening tcp udp numeric processes no-header"); err != nil {
		return p.Usage(255, err)
	}
	p.Printf("State  Recv-Q Send-Q Local Address:Port Peer Address:PortProcess\nLISTEN 0      128          0.0.0.0:22         0.0.0.0:*    \n")
	for _, port := range c.Listening() {
		p.Printf("LISTEN 0      0                  *:%d            *:*    \n", port)
	}
	return 0
}

// firewall implements ufw, firewalld, nftables and iptables. They are installed and allow all traffic.
func firewall(_ context.Context, p *sh.Proc) int {
	if !p.Root() {
		switch p.Name() {
		case "ufw":
			fmt.Fprintf(p.Stderr, "ERROR: You need to be root to run this script\n")
		case "firewall-cmd":
			fmt.Fprintf(p.Stderr, "Authorization failed.\n    Make sure polkit agent is running or run the application as superuser.\n")
			return 253
		default:
			fmt.Fprintf(p.Stderr, "Operation not permitted (you must be root)\n")
		}
		return 1
	}
	args := strings.Join(p.Args[1:], " ")
	switch p.Name() {
	case "ufw":
		if strings.HasPrefix(args, "status") {
			p.Printf("Status: inactive\n")
		}
	case "firewall-cmd":
		if args == "--state" {
			fmt.Fprintf(p.Stderr, "not running\n")
		} else {
			fmt.Fprintf(p.Stderr, "FirewallD is not running\n")
		}
		return 252
	case "iptables":
		if strings.HasPrefix(args, "-S") {
			p.Printf("-P INPUT ACCEPT\n-P FORWARD ACCEPT\n-P OUTPUT ACCEPT\n")
		}
	}
	return 0
}
