package esxcli

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// view creates an answer from the rows that a function returns for a host.
func view(w *world.World, host string, typeName string, rows func(*world.State, *world.Host) [][]Field) (Answer, error) {
	a := Answer{Type: typeName}
	err := fmt.Errorf("no host %q in the lab", host)
	w.View(func(s *world.State) {
		if h := s.Host(host); h != nil {
			a.Rows, err = rows(s, h), nil
		}
	})
	return a, err
}

func row(pairs ...string) []Field {
	var fields []Field
	for pair := range slices.Chunk(pairs, 2) {
		fields = append(fields, Field{Name: pair[0], Value: pair[1]})
	}
	return fields
}

func nicList(w *world.World, host string, _ Args) (Answer, error) {
	return view(w, host, "NIC", func(s *world.State, h *world.Host) (rows [][]Field) {
		for _, p := range h.PNICs {
			link, speed, duplex := "Up", strconv.Itoa(p.SpeedMbps), "Full"
			if !p.LinkUp {
				link, speed, duplex = "Down", "0", "Half"
			}
			rows = append(rows, row("Name", p.Device, "PCI Device", p.PCI, "Driver", p.Driver, "Admin Status", "Up", "Link Status", link,
				"Speed", speed, "Duplex", duplex, "MAC Address", p.MAC, "MTU", strconv.Itoa(s.MTU(h, p)),
				"Description", p.Vendor+" "+p.Model))
		}
		return rows
	})
}

func nicGet(w *world.World, host string, args Args) (Answer, error) {
	found := false
	a, err := view(w, host, "NicInfo", func(_ *world.State, h *world.Host) (rows [][]Field) {
		p := h.PNIC(args["nicname"])
		if p == nil {
			return nil
		}
		found = true
		link := map[bool]string{true: "Up", false: "Down"}[p.LinkUp]
		rx, tx := h.Pause(p)
		return [][]Field{{
			{Name: "Advertised Auto Negotiation", Value: "true"},
			{Name: "Advertised Link Modes", Value: fmt.Sprintf("Auto, %dBaseCR4/Full", p.MaxSpeedMbps)},
			{Name: "Auto Negotiation", Value: "true"},
			{Name: "Cable Type", Value: "DA"},
			{Name: "Current Message Level", Value: "0"},
			{Name: "Driver Info", Sub: row("Bus Info", strings.ReplaceAll(p.PCI, ".", ":"), "Driver", p.Driver,
				"Firmware Version", p.Firmware, "Version", p.DriverVersion)},
			{Name: "Link Detected", Value: strconv.FormatBool(p.LinkUp)},
			{Name: "Link Status", Value: link},
			{Name: "Name", Value: p.Device},
			{Name: "PHYAddress", Value: "0"},
			{Name: "Pause Autonegotiate", Value: "false"},
			{Name: "Pause RX", Value: strconv.FormatBool(rx)},
			{Name: "Pause TX", Value: strconv.FormatBool(tx)},
			{Name: "Supported Ports", Value: "DA"},
			{Name: "Supports Auto Negotiation", Value: "true"},
			{Name: "Supports Pause", Value: "true"},
			{Name: "Supports Wakeon", Value: "false"},
			{Name: "Transceiver", Value: "internal"},
			{Name: "Virtual Address", Value: "00:50:56:5" + p.MAC[len(p.MAC)-7:]},
			{Name: "Wakeon", Value: "None"},
		}}
	})
	if err == nil && !found {
		err = refuse("NIC %s does not exist", args["nicname"])
	}
	return a, err
}

func pauseList(w *world.World, host string, args Args) (Answer, error) {
	return view(w, host, "PauseParams", func(_ *world.State, h *world.Host) (rows [][]Field) {
		for _, p := range h.PNICs {
			if args["nicname"] == "" || args["nicname"] == p.Device {
				rx, tx := h.Pause(p)
				rows = append(rows, row("NIC", p.Device, "Pause Params Supported", "true", "Pause RX", strconv.FormatBool(rx),
					"Pause TX", strconv.FormatBool(tx), "Auto Negotiation", "false", "Auto Negotiation Resolution Avail", "false",
					"RX Auto Negotiation Resolution", "false", "TX Auto Negotiation Resolution", "false"))
			}
		}
		return rows
	})
}

func pauseSet(w *world.World, host string, args Args) (Answer, error) {
	return Answer{Message: true}, w.Update(func(s *world.State) ([]world.Event, error) {
		h := s.Host(host)
		if h == nil {
			return nil, fmt.Errorf("no host %q in the lab", host)
		}
		p := h.PNIC(args["nicname"])
		if p == nil {
			return nil, refuse("NIC %s does not exist", args["nicname"])
		}
		for value, to := range map[string]*bool{"rx": &p.RxPause, "tx": &p.TxPause} {
			if args[value] != "" {
				on, err := truth(args[value])
				if err != nil {
					return nil, err
				}
				*to = on
			}
		}
		return []world.Event{{What: world.HostNetwork, Host: host, Detail: p.Device + " pause"}}, nil
	})
}

// truth parses a boolean as esxcli does: true, false, 1, 0, yes, no, or a prefix of one of these.
func truth(text string) (bool, error) {
	switch strings.ToLower(text) {
	case "true", "t", "1", "yes", "y":
		return true, nil
	case "false", "f", "0", "no", "n":
		return false, nil
	}
	return false, refuse("Argument type mismatch: invalid boolean value %q", text)
}

func ipv4Get(w *world.World, host string, args Args) (Answer, error) {
	return view(w, host, "IPv4Interface", func(_ *world.State, h *world.Host) (rows [][]Field) {
		for _, v := range h.VMKs {
			if args["interfacename"] == "" || args["interfacename"] == v.Device {
				rows = append(rows, row("Name", v.Device, "IPv4 Address", v.IP, "IPv4 Netmask", v.Netmask(), "IPv4 Broadcast", "",
					"Address Type", "STATIC", "Gateway", "0.0.0.0", "DHCP DNS", "false"))
			}
		}
		return rows
	})
}

// ping sends packets from a vmkernel adapter to that of another host. The result depends on links, switches and MTU.
func ping(w *world.World, host string, args Args) (Answer, error) {
	count, err := strconv.Atoi(orElse(args["count"], "3"))
	if err != nil || count < 1 {
		return Answer{}, refuse("Invalid count %q", args["count"])
	}
	size, err := strconv.Atoi(orElse(args["size"], "56"))
	if err != nil || size < 0 {
		return Answer{}, refuse("Invalid size %q", args["size"])
	}
	to, err := netip.ParseAddr(args["host"])
	if err != nil {
		return Answer{}, refuse("Unknown host %q", args["host"])
	}
	reached, tooBig := false, false
	a, err := view(w, host, "PingResult", func(s *world.State, h *world.Host) [][]Field {
		reached, tooBig = s.Ping(h, args["interface"], to.String(), size+28, args["df"] == "true")
		return nil
	})
	switch {
	case err != nil:
		return Answer{}, err
	case tooBig:
		return Answer{}, refuse("sendto() failed (Message too long)")
	}
	got := 0
	if reached {
		got = count
	}
	a.Rows = [][]Field{{
		{Name: "Summary", Sub: row("Duplicated", "0", "Host Addr", args["host"], "Packet Lost", strconv.Itoa(100*(count-got)/count),
			"Recieved", strconv.Itoa(got), "Roundtrip Avg MS", "143", "Roundtrip Max MS", "181", "Roundtrip Min MS", "118",
			"Transmitted", strconv.Itoa(count))},
	}}
	return a, nil
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}
