package esxcli

import (
	"errors"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

func firewallGet(w *world.World, host string, _ Args) (Answer, error) {
	return view(w, host, "Firewall", func(*world.State, *world.Host) [][]Field {
		return [][]Field{row("Default Action", "DROP", "Enabled", "true", "Loaded", "true")}
	})
}

func rulesetSet(w *world.World, host string, args Args) (Answer, error) {
	on, err := truth(args["enabled"])
	if err != nil {
		return Answer{}, err
	}
	err = w.SetRuleset(host, args["rulesetid"], on)
	if errors.Is(err, world.ErrUnknown) {
		err = refuse("Unable to find ruleset %s", args["rulesetid"])
	}
	return Answer{Message: true}, err
}

// optionKey converts /Net/PVRDMAVmknic to Net.PVRDMAVmknic.
func optionKey(path string) string { return strings.ReplaceAll(strings.Trim(path, "/"), "/", ".") }

func advancedList(w *world.World, host string, args Args) (Answer, error) {
	a, err := view(w, host, "SettingsAdvancedOption", func(_ *world.State, h *world.Host) (rows [][]Field) {
		var keys []string
		for key := range h.Options {
			keys = append(keys, key)
		}
		sort.Strings(keys)
		for _, key := range keys {
			path := "/" + strings.ReplaceAll(key, ".", "/")
			if args["option"] != "" && args["option"] != path || !strings.HasPrefix(path, args["tree"]) {
				continue
			}
			rows = append(rows, advancedRow(path, h.Options[key]))
		}
		return rows
	})
	if err == nil && len(a.Rows) == 0 {
		err = refuse("Unable to find option")
	}
	return a, err
}

func advancedRow(path string, value any) []Field {
	kind, number, text, valid := "string", "0", "", "*"
	switch v := value.(type) {
	case string:
		text = v
	case int64:
		kind, number, valid = "integer", strconv.FormatInt(v, 10), ""
	case bool:
		kind, valid = "integer", ""
		if v {
			number = "1"
		}
	}
	description := ""
	if path == "/Net/PVRDMAVmknic" {
		description = "Vmknic for PVRDMA"
	}
	return row("Path", path, "Type", kind, "Int Value", number, "Default Int Value", "0", "Min Value", "0", "Max Value", "0",
		"String Value", text, "Default String Value", "", "Valid Characters", valid, "Description", description,
		"Host Specific", "false", "Impact", "none")
}

func advancedSet(w *world.World, host string, args Args) (Answer, error) {
	key := optionKey(args["option"])
	var old any
	w.View(func(s *world.State) {
		if h := s.Host(host); h != nil {
			old = h.Options[key]
		}
	})
	var value any
	text, isText := args["stringvalue"]
	number, isNumber := args["intvalue"]
	switch old.(type) {
	case nil:
		return Answer{}, refuse("Unable to find option")
	case string:
		if isNumber || !isText && args["default"] == "" {
			return Answer{}, refuse("Option expects a string value")
		}
		value = text
	case int64:
		n, err := strconv.ParseInt(number, 10, 64)
		if isText || err != nil {
			return Answer{}, refuse("Option expects an integer value")
		}
		value = n
	case bool:
		if isText || number != "0" && number != "1" {
			return Answer{}, refuse("Option expects an integer value")
		}
		value = number == "1"
	}
	return Answer{Message: true}, w.SetOption(host, key, value)
}

func moduleList(w *world.World, host string, _ Args) (Answer, error) {
	return view(w, host, "Module", func(_ *world.State, h *world.Host) (rows [][]Field) {
		for _, m := range h.Modules {
			rows = append(rows, row("Name", m.Name, "Is Loaded", strconv.FormatBool(m.Loaded), "Is Enabled", "true"))
		}
		return rows
	})
}

func parameterList(w *world.World, host string, args Args) (Answer, error) {
	found := false
	a, err := view(w, host, "ModuleParameter", func(_ *world.State, h *world.Host) (rows [][]Field) {
		m := h.Module(args["module"])
		if m == nil {
			return nil
		}
		found = true
		for _, p := range m.Parameters {
			rows = append(rows, row("Name", p.Name, "Type", p.Type, "Value", p.Value, "Description", p.Description))
		}
		return rows
	})
	if err == nil && !found {
		err = refuse("Invalid Module name %s", args["module"])
	}
	return a, err
}

func parameterSet(w *world.World, host string, args Args) (Answer, error) {
	wanted := args["parameterstring"]
	if args["append"] == "true" {
		var kept []string
		w.View(func(s *world.State) {
			if h := s.Host(host); h != nil && h.Module(args["module"]) != nil {
				for _, p := range h.Module(args["module"]).Parameters {
					named := slices.ContainsFunc(strings.Fields(wanted), func(f string) bool { return strings.HasPrefix(f, p.Name+"=") })
					if p.Value != "" && !named {
						kept = append(kept, p.Name+"="+p.Value)
					}
				}
			}
		})
		wanted = strings.Join(append(kept, wanted), " ")
	}
	err := w.SetModule(host, args["module"], wanted)
	switch {
	case errors.Is(err, world.ErrUnknown):
		return Answer{}, refuse("Unable to set module parameters: %s", err)
	case errors.Is(err, world.ErrInvalid):
		return Answer{}, refuse("Invalid parameter string: %s", wanted)
	}
	return Answer{Message: true}, err
}

func versionGet(w *world.World, host string, _ Args) (Answer, error) {
	return view(w, host, "Version", func(_ *world.State, h *world.Host) [][]Field {
		return [][]Field{row("Product", "VMware ESXi", "Version", h.Version, "Build", "Releasebuild-"+h.Build,
			"Update", h.Version[strings.LastIndex(h.Version, ".")+1:], "Patch", "35")}
	})
}

func hostnameGet(w *world.World, host string, _ Args) (Answer, error) {
	return view(w, host, "FullyQualifiedHostName", func(_ *world.State, h *world.Host) [][]Field {
		return [][]Field{row("Domain Name", "lab.example", "Fully Qualified Domain Name", h.Name+".lab.example", "Host Name", h.Name)}
	})
}
