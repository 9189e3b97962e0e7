package system

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/transcript"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/esxcli"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// Depots sets the files on datastores from which components are installed: single VIBs (.vib) and offline bundles (.zip), by
// absolute path as ESXi sees it (/vmfs/volumes/...).
func (s *System) Depots(paths []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.depots = slices.Clone(paths)
}

func (s *System) depotPaths() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.depots)
}

// nextImage selects the image for the next boot.
var nextImage = esxcli.Arg{Name: "rebootingimage", Text: "true"}

func (s *System) installed(ctx context.Context, host string, which ...esxcli.Arg) (map[string]backends.VIB, error) {
	rows, err := s.cli.Ask(ctx, host, "software vib list", which...)
	out := make(map[string]backends.VIB, len(rows))
	for _, r := range rows {
		out[r["Name"]] = backends.VIB{Version: r["Version"], Acceptance: acceptance(r["AcceptanceLevel"])}
	}
	return out, err
}

// offers reads the contents of a file on a datastore, as a host sees it.
func (s *System) offers(ctx context.Context, host, file string) ([]backends.Component, error) {
	args := []string{"software", "sources", "vib", "get", "-v", file}
	if bundle(file) {
		args = []string{"software", "sources", "vib", "list", "-d", file}
	}
	if !path.IsAbs(file) {
		return nil, backends.Refusedf(host, "write it as ESXi sees it: /vmfs/volumes/DATASTORE/FILE",
			"%s is not an absolute path", file)
	}
	rows, err := s.cli.Run(ctx, host, args...)
	if err != nil {
		return nil, refusal(err)
	}
	var out []backends.Component
	for _, r := range rows {
		if r["Name"] != "" {
			out = append(out, backends.Component{Path: file, Name: r["Name"], Version: r["Version"], Acceptance: acceptance(r["AcceptanceLevel"])})
		}
	}
	return out, nil
}

func bundle(file string) bool { return strings.EqualFold(path.Ext(file), ".zip") }

// acceptance converts an acceptance level to the spelling of the host's own level; esxcli uses two forms.
func acceptance(level string) string {
	level = strings.ReplaceAll(strings.TrimSpace(level), " ", "")
	full := map[string]string{"certified": "VMwareCertified", "accepted": "VMwareAccepted", "partner": "PartnerSupported",
		"community": "CommunitySupported"}[level]
	if full == "" {
		return level
	}
	return full
}

// componentSetter installs VIBs. They take effect at the next boot and are not removed again.
type componentSetter struct{ *System }

// Read returns the version in the image for the next boot; Absent if it is not in it.
func (s componentSetter) Read(ctx context.Context, t backends.Setting) (backends.Value, error) {
	image, err := s.installed(ctx, t.Target.Name, nextImage)
	if err == nil && len(image) == 0 { // no image is staged
		image, err = s.installed(ctx, t.Target.Name)
	}
	if v, ok := image[t.Name]; ok && err == nil {
		return backends.ValueOf(v.Version), nil
	}
	return backends.Absent, err
}

// Set installs the requested version from the depot that has it. The installer's checks stay enabled; if it refuses, the operator
// decides.
func (s componentSetter) Set(ctx context.Context, t backends.Setting, to backends.Value, progress backends.Progress) error {
	host, what := t.Target.Name, "install "+t.Name
	got, err := s.Read(ctx, t)
	if err != nil || got == to {
		return err
	}
	if to.IsAbsent() {
		return backends.Refusedf(host, "remove it by hand: esxcli software vib remove -n "+t.Name,
			"installed components are not removed by this program")
	}
	version, err := backends.Decoded[string](to, host, what)
	if err != nil {
		return err
	}
	what += " " + version
	file, err := s.depot(ctx, host, t.Name, version)
	if err != nil {
		return backends.Errorf(kindOf(err), host, backends.HintOf(err), "%s: %w", what, err)
	}
	option := "-v"
	if bundle(file) {
		option = "-d"
	}
	return wire.Set(ctx, host, what, to, progress, wire.Reading(ctx, s.Read, t, to), func() error {
		_, err := s.cli.Run(ctx, host, "software", "vib", "install", option, file)
		return refusal(err)
	})
}

func (s componentSetter) depot(ctx context.Context, host, name, version string) (string, error) {
	var seen []string
	var failed error
	for _, file := range s.depotPaths() {
		offers, err := s.offers(ctx, host, file)
		if err != nil {
			failed = err
			continue
		}
		for _, o := range offers {
			if o.Name == name && o.Version == version {
				return file, nil
			}
			seen = append(seen, o.Name+" "+o.Version)
		}
	}
	if failed != nil {
		return "", failed
	}
	hint := "name a file that holds it under sriov.components in the answers"
	if len(seen) > 0 {
		hint += "; those named hold " + strings.Join(seen, ", ")
	}
	return "", backends.Refusedf("", hint, "no file that was named holds it")
}

func kindOf(err error) backends.ErrorKind {
	if k := backends.KindOf(err); k != "" {
		return k
	}
	return backends.KindPermanent
}

// remedies maps the installer's error names to remedies.
var remedies = []struct{ mark, hint string }{
	{"[AcceptanceConfigError]",
		"use a VIB of the vendor's that is signed for this level, or decide about the host's level yourself: esxcli software acceptance set"},
	{"Secure Boot", "use a signed VIB: with UEFI Secure Boot a host with an unsigned one does not boot"},
	{"trusted signer", "use a signed VIB of the vendor's"},
	{"[DependencyError]", "use the offline bundle (.zip) that holds what the VIB requires, made for this version of ESXi"},
	{"[MetadataDownloadError]", "check the path in the answers, and that this host has the datastore"},
	{"[VibDownloadError]", "check the path in the answers, and that this host has the datastore"},
	{"[VibFormatError]", "name a .vib file or an offline bundle (.zip); a package from the vendor may have to be unzipped first"},
	{"[MaintenanceModeError]", "bring the host into maintenance mode first"},
	{"[LiveInstallationError]", "reboot the host, then run rdma-setup resume"},
	{"[LockingError]", "another installation runs on the host; wait for it to end, then run rdma-setup resume"},
}

func refusal(err error) error {
	if err == nil || errors.Is(err, esxcli.ErrNoCommand) {
		return err
	}
	text := err.Error()
	for _, r := range remedies {
		if !strings.Contains(text, r.mark) {
			continue
		}
		kind := backends.KindPermanent
		if r.mark == "[LockingError]" {
			kind = backends.KindTransient
		}
		return backends.Errorf(kind, "", r.hint, "the installer refuses: %s", said(text, r.mark))
	}
	return err
}

// said shortens the installer's message to its main sentence.
func said(text, mark string) string {
	if change := transcript.VIBChangeOf(text); change.Failed() && len(change.Errors) > 0 && change.Errors[0].Text != "" {
		return change.Errors[0].Text
	}
	if _, rest, ok := strings.Cut(text, "]"); ok && strings.HasPrefix(mark, "[") {
		text = rest
	}
	text, _, _ = strings.Cut(text, "Please refer to the log file")
	return fmt.Sprintf("%s %s", strings.Trim(mark, "[]"), strings.Join(strings.Fields(text), " "))
}
