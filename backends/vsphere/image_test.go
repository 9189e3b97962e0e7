package vsphere_test

import (
	"context"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/lab"
	events "github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/settertest"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/backends/vsphere"
)

const (
	webServer = "http://depot.lab/esx/"
	release   = "4.28.0.92-1OEM.801.0.0.21495797"
	mftBundle = webServer + "Mellanox-MFT-Tools_" + release + "_23580150.zip"
	kmBundle  = webServer + "Mellanox-NATIVE-NMST_" + release + "_23580151.zip"
)

func component(t backends.Ref, name string) backends.Setting {
	return backends.Setting{Target: t, Kind: backends.KindImageComponent, Name: name}
}

var ofCluster = component(backends.ClusterRef("Cluster-01"), "Mellanox-MFT-Tools")

// imaged starts a cluster that is managed with an image.
func imaged(t *testing.T, faults ...string) (*lab.Lab, *vsphere.Client, backends.Setter) {
	t.Helper()
	t.Parallel()
	l, c := startLab(t, lab.Options{Hosts: 2, VMs: 1, Scenario: "sriov-image", RebootTime: 20 * time.Millisecond, Faults: faults})
	c.Depots([]string{mftBundle, kmBundle})
	return l, c, c.Setters()[backends.KindImageComponent]
}

// managed is the image of the lab's cluster and its depots.
type managed struct {
	*events.Image
	*events.Lifecycle
}

// lifecycle reads the image of the lab, and may change it.
func lifecycle(t *testing.T, l *lab.Lab, look func(managed)) {
	t.Helper()
	if err := l.World().Update(func(s *events.State) ([]events.Event, error) {
		look(managed{s.Services.Image, &s.Lifecycle})
		return nil, nil
	}); err != nil {
		t.Fatal(err)
	}
}

func TestImageContractOnLab(t *testing.T) {
	testclass.Plain(t)
	l, _, set := imaged(t)
	commits := func() (n int) {
		lifecycle(t, l, func(i managed) { n = i.Commits })
		return n
	}
	missing := ofCluster
	missing.Target.Name = "no-such-cluster"
	settertest.Run(t, settertest.Case{Setter: set, Setting: ofCluster, OneWay: true, Missing: missing, Writes: commits,
		Values: []backends.Value{backends.ValueOf(release)}})
	lifecycle(t, l, func(i managed) {
		if len(i.Drafts) != 0 || i.Components["Mellanox-MFT-Tools"] != release {
			t.Errorf("%d drafts, components %v", len(i.Drafts), i.Components)
		}
	})
	testclass.OK(t, set.Set(t.Context(), ofCluster, backends.Absent, nil))
	if got, err := set.Read(t.Context(), ofCluster); err != nil || !got.IsAbsent() {
		t.Errorf("removed, but reads %s, %v", got, err)
	}
}

// An edit that cannot be finished leaves the image unchanged, and no draft of this program.
func TestImageThatIsNotEdited(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(managed)
		faults  []string
		version string
		want    string
		drafts  int
	}{
		"another's draft": {func(i managed) { i.NewDraft(`VSPHERE.LOCAL\maria`) }, nil, release,
			`VSPHERE.LOCAL\maria edits the image; that draft stays as it is`, 1},
		"our own, something else": {func(i managed) { i.NewDraft(`VSPHERE.LOCAL\administrator`).Components["Intel-icen"] = "1.0" }, nil,
			release, "edits the image", 1},
		"our own, another base image": {func(i managed) { i.NewDraft(`VSPHERE.LOCAL\administrator`).Base = "8.0.3-0.35.24280767" }, nil, release,
			"edits the image", 1},
		"not valid": {func(i managed) { i.Bundles[0].Conflict = "Component X conflicts with Y." }, nil, release,
			"the image would not be valid: Component X conflicts with Y.", 0},
		"validation fails": {nil, []string{"method=lifecycle.validate,do=task-error:The depot service is not there"}, release,
			"validate the draft: The depot service is not there", 0},
		"commit fails": {nil, []string{"method=lifecycle.commit,do=task-error:No disk space"}, release, "commit the draft: No disk space",
			0},
		"bundle is not there": {func(i managed) { i.Bundles = i.Bundles[1:] }, nil, release, "404", 0},
		"no bundle was named": {nil, nil, "9.9", "no depot of vCenter has Mellanox-MFT-Tools 9.9", 0},
	} {
		t.Run(name, func(t *testing.T) {
			l, _, set := imaged(t, c.faults...)
			if c.prepare != nil {
				lifecycle(t, l, c.prepare)
			}
			err := set.Set(t.Context(), ofCluster, backends.ValueOf(c.version), nil)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("want %q, got %v", c.want, err)
			}
			lifecycle(t, l, func(i managed) {
				if len(i.Components) != 0 || len(i.Drafts) != c.drafts {
					t.Errorf("components %v, %d drafts", i.Components, len(i.Drafts))
				}
			})
		})
	}
}

// A bundle of this computer is served to vCenter only while vCenter fetches it (PULL). The lab fetches it over the network.
func TestImageFromAFileOfThisComputer(t *testing.T) {
	l, c, set := imaged(t)
	file := filepath.Join(t.TempDir(), path.Base(mftBundle))
	c.Depots([]string{file})
	if err := set.Set(t.Context(), ofCluster, backends.ValueOf(release), nil); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Fatalf("without the file: %v", err)
	}
	testclass.Write(t, file, "PK")
	testclass.OK(t, set.Set(t.Context(), ofCluster, backends.ValueOf(release), nil))
	lifecycle(t, l, func(i managed) {
		if len(i.Drafts) != 0 || i.Components["Mellanox-MFT-Tools"] != release || len(i.Depots) != 1 {
			t.Errorf("%d drafts, components %v, depots %v", len(i.Drafts), i.Components, i.Depots)
		}
	})
}

// If vCenter cannot import it, the error names the URL and explains how to import the bundle by hand.
func TestImageFromAFileThatIsNotImported(t *testing.T) {
	l, c, set := imaged(t)
	lifecycle(t, l, func(i managed) { i.Bundles = i.Bundles[1:] })
	file := filepath.Join(t.TempDir(), path.Base(mftBundle))
	testclass.Write(t, file, "PK")
	c.Depots([]string{file})
	err := set.Set(t.Context(), ofCluster, backends.ValueOf(release), nil)
	if err == nil || !strings.Contains(err.Error(), "which vCenter was to fetch at http://127.0.0.1:") ||
		!strings.Contains(backends.HintOf(err), "Import Updates") {
		t.Errorf("%v, hint %q", err, backends.HintOf(err))
	}
}

// A run that was killed between creating the draft and committing it leaves a draft of this program that contains only the change.
func TestImageDraftThatAKilledRunLeft(t *testing.T) {
	l, _, set := imaged(t)
	lifecycle(t, l, func(i managed) {
		i.NewDraft(`VSPHERE.LOCAL\administrator`).Components["Mellanox-MFT-Tools"] = release
	})
	if got, err := set.Read(t.Context(), ofCluster); err != nil || got != backends.Partial(release) {
		t.Errorf("reads %s, %v", got, err)
	}
	testclass.OK(t, set.Set(t.Context(), ofCluster, backends.ValueOf(release), nil))
	lifecycle(t, l, func(i managed) {
		if len(i.Drafts) != 0 || i.Components["Mellanox-MFT-Tools"] != release {
			t.Errorf("%d drafts, components %v", len(i.Drafts), i.Components)
		}
	})
}

// A rollback deletes that draft, although the image is unchanged.
func TestImageDraftThatIsRolledBack(t *testing.T) {
	l, _, set := imaged(t)
	lifecycle(t, l, func(i managed) { i.NewDraft(`VSPHERE.LOCAL\administrator`) })
	testclass.OK(t, set.Set(t.Context(), ofCluster, backends.Absent, nil))
	if got, err := set.Read(t.Context(), ofCluster); err != nil || !got.IsAbsent() {
		t.Errorf("reads %s, %v", got, err)
	}
}

// remediable returns a lab whose image has the component and whose first host may be remediated.
func remediable(t *testing.T, faults ...string) (*lab.Lab, backends.Setter) {
	t.Helper()
	l, _, set := imaged(t, faults...)
	testclass.OK(t, set.Set(t.Context(), ofCluster, backends.ValueOf(release), nil))
	l.World().Evacuate("esx-01")
	testclass.OK(t, l.World().SetMaintenance("esx-01", true))
	return l, set
}

func booted(l *lab.Lab, host string) (at time.Time) {
	l.World().View(func(s *events.State) { at = s.Host(host).BootTime })
	return at
}

func TestHostIsRemediatedAlone(t *testing.T) {
	l, set := remediable(t)
	first, other := booted(l, "esx-01"), booted(l, "esx-02")
	s := component(backends.HostRef("esx-01"), "Mellanox-MFT-Tools")
	testclass.OK(t, set.Set(t.Context(), s, backends.ValueOf(release), nil))
	if got, err := set.Read(t.Context(), s); err != nil || got != backends.ValueOf(release) {
		t.Errorf("reads %s, %v", got, err)
	}
	if booted(l, "esx-01").Equal(first) || !booted(l, "esx-02").Equal(other) {
		t.Error("the wrong host was rebooted")
	}
	l.World().View(func(s *events.State) {
		if !s.Host("esx-01").Maintenance {
			t.Error("the host has left maintenance mode")
		}
	})
}

func TestHostThatIsNotRemediated(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(l *lab.Lab) error
		faults  []string
		want    string
	}{
		"in service":               {func(l *lab.Lab) error { return l.World().SetMaintenance("esx-01", false) }, nil, "not in maintenance mode"},
		"VMs would be powered off": {func(l *lab.Lab) error { return power(l) }, nil, "would change the power state of VMs (POWER_OFF_VMS)"},
		"image without it": {func(l *lab.Lab) error {
			return l.World().Update(func(s *events.State) ([]events.Event, error) { s.Services.Image.Components = nil; return nil, nil })
		}, nil, "the image has absent of Mellanox-MFT-Tools"},
		"remediation fails": {nil, []string{"host=esx-01,method=lifecycle.remediate,do=task-error:cannot download VIB"}, "cannot download VIB"},
	} {
		t.Run(name, func(t *testing.T) {
			l, set := remediable(t, c.faults...)
			if c.prepare != nil {
				testclass.OK(t, c.prepare(l))
			}
			before := booted(l, "esx-01")
			err := set.Set(t.Context(), component(backends.HostRef("esx-01"), "Mellanox-MFT-Tools"), backends.ValueOf(release), nil)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("want %q, got %v", c.want, err)
			}
			if !booted(l, "esx-01").Equal(before) {
				t.Error("it was rebooted")
			}
		})
	}
}

func power(l *lab.Lab) error {
	return l.World().Update(func(s *events.State) ([]events.Event, error) { s.Services.Image.PowerOff = true; return nil, nil })
}

// The remediation that a killed run has started continues in vCenter: the next run waits for it and starts none.
func TestRemediationOfAKilledRunIsWaitedFor(t *testing.T) {
	l, set := remediable(t)
	s := component(backends.HostRef("esx-01"), "Mellanox-MFT-Tools")
	ctx, cancel := context.WithCancel(t.Context())
	seen := make(chan struct{}, 1)
	l.World().Watch(func(e events.Event) {
		if e.What == events.HostDown {
			select {
			case seen <- struct{}{}:
			default:
			}
		}
	})
	ended := make(chan error, 1)
	go func() { ended <- set.Set(ctx, s, backends.ValueOf(release), nil) }()
	<-seen
	cancel()
	if err := <-ended; err == nil {
		t.Fatal("it was not interrupted")
	}
	testclass.OK(t, setUntilConnected(t, set, s))
	downs := 0
	for _, e := range l.World().Log.Events() {
		if e.What == events.HostDown {
			downs++
		}
	}
	if downs != 1 {
		t.Errorf("the host went down %d times", downs)
	}
}

// setUntilConnected repeats Set until the host is connected again: the engine waits for a disconnected host before it continues.
func setUntilConnected(t *testing.T, set backends.Setter, s backends.Setting) error {
	t.Helper()
	for {
		err := set.Set(t.Context(), s, backends.ValueOf(release), nil)
		if err == nil || t.Context().Err() != nil || !strings.Contains(err.Error(), "does not respond") {
			return err
		}
	}
}

func TestImageIsRead(t *testing.T) {
	l, c, _ := imaged(t)
	lifecycle(t, l, func(i managed) {
		i.NewDraft(`VSPHERE.LOCAL\maria`)
		i.Hardware, i.AddOn, i.QuickBoot = "OEM HSM", "DEL-ESXi", true
	})
	inv, err := c.Inventory(t.Context(), backends.Scope{Details: true})
	testclass.OK(t, err)
	c.Images(t.Context(), inv, []*backends.Host{&inv.Hosts[0], &inv.Hosts[1]})
	img := inv.Cluster("Cluster-01").Image
	if img == nil || img.Error != "" || img.AddOn != "DEL-ESXi" || len(img.Hardware) != 1 || !img.QuickBoot ||
		img.Power != "DO_NOT_CHANGE_VMS_POWER_STATE" ||
		len(img.Drafts) != 1 || img.Drafts[0].Ours || img.Drafts[0].Owner != `VSPHERE.LOCAL\maria` {
		t.Errorf("%+v", img)
	}
	if !inv.Hosts[0].System.Components.Known() {
		t.Errorf("%+v", inv.Hosts[0].System.Components)
	}
	reader := dialLab(t, l, "readonly@vsphere.local", "Lab-vcenter-1")
	if inv, err = reader.Inventory(t.Context(), backends.Scope{Details: true}); err != nil {
		t.Fatal(err)
	}
	reader.Images(t.Context(), inv, []*backends.Host{&inv.Hosts[0]})
	if img := inv.Cluster("Cluster-01").Image; img == nil || !strings.Contains(img.Error, "VcIntegrity.lifecycleSoftwareSpecification.Read") {
		t.Errorf("%+v", img)
	}
}
