package esxcli

import (
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

func vibList(w *world.World, host string, args Args) (Answer, error) {
	return view(w, host, "VIBSummaryExt", func(_ *world.State, h *world.Host) (rows [][]Field) {
		left := world.PendingInstall
		if args["rebootingimage"] == "true" {
			if !h.Staged() {
				return nil // the staged image does not exist before something is staged
			}
			left = world.PendingRemove
		}
		for _, v := range h.VIBs {
			if v.Pending != left {
				date := v.Installed.Format("2006-01-02")
				rows = append(rows, row("Name", v.Name, "Version", v.Version, "Vendor", v.Vendor, "Acceptance Level", v.Acceptance,
					"Install Date", date, "Platforms", "host", "Creation Date", date, "ID", v.Vendor+"_bootbank_"+v.Name+"_"+v.Version, "Status", ""))
			}
		}
		return rows
	})
}

// sourceList lists the contents of an offline bundle.
func sourceList(w *world.World, host string, args Args) (Answer, error) {
	return sources(w, host, args["depot"], true, func(v world.VIB) []Field {
		return row("Name", v.Name, "Version", v.Version, "Vendor", v.Vendor, "Creation Date", "2024-03-05", "Acceptance Level", v.Acceptance)
	}, Answer{Type: "Vib"})
}

// sourceGet prints the VIBs in a bundle or a file.
func sourceGet(w *world.World, host string, args Args) (Answer, error) {
	file := args["viburl"]
	if (file == "") == (args["depot"] == "") {
		return Answer{}, refuse("One and only one of --depot or --viburl must be given.")
	}
	return sources(w, host, file+args["depot"], file == "", func(v world.VIB) []Field {
		return row("ID", v.ID(), "Name", v.Name, "Version", v.Version, "Type", "bootbank", "Vendor", v.Vendor, "Acceptance Level", v.Acceptance,
			"Summary", v.Name, "Description", v.Name, "Creation Date", "2024-03-05", "Maintenance Mode Required", "True", "Live Install Allowed",
			"False",
			"Live Remove Allowed", "False", "Stateless Ready", "True", "Overlay", "False", "Payloads", v.Name)
	}, Answer{Type: "VibExt"})
}

func sources(w *world.World, host, file string, bundle bool, fields func(world.VIB) []Field, a Answer) (Answer, error) {
	pkg, err := w.OpenPackage(host, file, bundle)
	if err != nil {
		return Answer{}, err
	}
	for _, v := range pkg.VIBs {
		a.Rows = append(a.Rows, fields(v))
	}
	return a, nil
}

func vibInstall(w *world.World, host string, args Args) (Answer, error) {
	in := world.Install{Paths: strings.Split(args["viburl"], ","), Force: args["force"] == "true", NoCheck: args["nosigcheck"] == "true"}
	switch {
	case (args["viburl"] == "") == (args["depot"] == ""):
		return Answer{}, refuse("One and only one of --depot or --viburl must be given.")
	case args["depot"] != "":
		in.Paths, in.Bundle = []string{args["depot"]}, true
	}
	change, err := w.InstallVIBs(host, in)
	return result(change), err
}

func vibRemove(w *world.World, host string, args Args) (Answer, error) {
	change, err := w.RemoveVIBs(host, strings.Split(args["vibname"], ","))
	return result(change), err
}

func result(c world.ImageChange) Answer {
	needed := len(c.Installed)+len(c.Removed) > 0
	message := "Operation finished successfully."
	if needed {
		message = "The update completed successfully, but the system needs to be rebooted for the changes to be effective."
	}
	return Answer{Single: true, Type: "InstallationResult", Rows: [][]Field{{
		{Name: "Message", Value: message},
		list("VIBs Installed", c.Installed),
		list("VIBs Removed", c.Removed),
		list("VIBs Skipped", c.Skipped),
		{Name: "Reboot Required", Value: strconv.FormatBool(needed)},
		{Name: "DPU Results", Value: ""},
	}}}
}

func list(name string, values []string) Field {
	return Field{Name: name, List: append([]string{}, values...)}
}

func acceptanceGet(w *world.World, host string, _ Args) (Answer, error) {
	a := Answer{Message: true}
	w.View(func(s *world.State) {
		if h := s.Host(host); h != nil {
			a.Text = h.Acceptance
		}
	})
	return a, nil
}
