package recipe_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/recipe"
	"github.com/rdma-setup/rdma-setup/wizard/plan/rollback"
)

// A vGPU and PVRDMA work side by side, without GPUDirect RDMA (RDG: RoCE accelerated ML and HPC on Kubernetes with vGPU and PVRDMA,
// NVIDIA/Mellanox, 2019).
func TestVGPUIsNoted(t *testing.T) {
	inv := newInventory(2)
	inv.VMs[1].Passthrough = []string{"vgpu grid_a100-40c"}
	p, err := recipe.Build(newAnswers(inv), inv, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(p.Notes, "\n")
	for _, want := range []string{"vm-02: vGPU grid_a100-40c", "NCCL_IB_GDR_LEVEL=0"} {
		if !strings.Contains(notes, want) {
			t.Errorf("no %q in %q", want, notes)
		}
	}
	if strings.Contains(notes, "vm-01: vGPU") {
		t.Errorf("vm-01 has none: %q", notes)
	}
}

func guestID(vm string, kind backends.Kind, name string) string {
	return backends.Setting{Target: backends.GuestRef(vm), Kind: kind, Name: name}.ID()
}

func is(b bool) *bool { return &b }

// The ways to access GPU memory: DMA-BUF before nvidia-peermem before nv_peer_mem; planned modules are loaded again after a reboot.
func TestTheWayToGPUMemory(t *testing.T) {
	for name, c := range map[string]struct {
		edit   func(g *backends.Guest)
		module string // "" none: DMA-BUF
		note   string
	}{
		"open kernel modules": {func(g *backends.Guest) { g.NVIDIA.DMABuf = true }, "", "by DMA-BUF"},
		"open kernel modules, but a perftest without DMA-BUF support": {func(g *backends.Guest) {
			g.NVIDIA.DMABuf, g.CUDATests = true, &backends.CUDAPerftest{}
		}, "nvidia_peermem", ""},
		"open kernel modules, and somebody has loaded nvidia-peermem": {func(g *backends.Guest) {
			g.NVIDIA.DMABuf, g.Loaded = true, append(g.Loaded, "nvidia_peermem")
		}, "nvidia_peermem", ""},
		"closed modules": {func(*backends.Guest) {}, "nvidia_peermem", ""},
		"closed modules and MLNX_OFED, whose ib_core is not loaded yet": {func(g *backends.Guest) {
			g.PeerAPI, g.MOFED = is(false), "MLNX_OFED_LINUX-24.10-1.1.4.0"
		}, "nvidia_peermem", ""},
		"a driver before 470": {func(g *backends.Guest) {
			g.NVIDIA.Driver = "460.32.03"
			g.Available = append(held(g.Available, "nvidia_peermem"), "nv_peer_mem")
		}, "nv_peer_mem", ""},
	} {
		t.Run(name, func(t *testing.T) {
			inv := newGPUs(1)
			inv.Guests[0].NVIDIA = &backends.NVIDIA{Driver: "570.86.15", Error: "No devices were found"}
			c.edit(&inv.Guests[0])
			p := mustBuild(t, gpuAnswers(inv), inv, plan.Options{})
			got := p.Change(guestID("vm-01", backends.KindModules, "gpu"))
			persist := p.Change(guestID("vm-01", backends.KindPersist, ""))
			if c.module == "" {
				if got != nil {
					t.Errorf("planned: %s", got.To)
				}
				if strings.Contains(persist.To.String(), "peer") {
					t.Errorf("at boot %s", persist.To)
				}
			} else if got == nil || got.To != backends.ValueOf([]string{c.module}) {
				t.Fatalf("planned %+v", got)
			} else if !slices.Contains(got.After, guestID("vm-01", backends.KindModules, "rdma")) ||
				!strings.Contains(persist.To.String(), c.module) || !slices.Contains(persist.After, got.ID()) {
				t.Errorf("after %q; at boot %s", got.After, persist.To)
			}
			if !strings.Contains(strings.Join(p.Notes, "\n"), c.note) {
				t.Errorf("no note %q", c.note)
			}
		})
	}
}

// held returns a list without one of its elements.
func held(list []string, without string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == without })
}

func TestWhatAGuestForbidsGPUs(t *testing.T) {
	for name, c := range map[string]struct {
		edit   func(g *backends.Guest, a *answers.Answers)
		check  string
		why    string
		remedy string
	}{
		"no driver, none named": {func(g *backends.Guest, _ *answers.Answers) { g.NVIDIA = nil }, "GST-NVSMI-027", "no NVIDIA driver",
			"gpudirect.driver"},
		"tools without a module": {func(g *backends.Guest, _ *answers.Answers) {
			g.NVIDIA = &backends.NVIDIA{Error: "couldn't communicate with the NVIDIA driver"}
		}, "GST-NVSMI-027", "no module of the NVIDIA driver", "headers"},
		"nouveau has the GPU": {func(g *backends.Guest, a *answers.Answers) {
			g.NVIDIA, g.Loaded, a.GPUDirect.Driver = nil, append(g.Loaded, "nouveau"), []string{"nvidia-headless-570-server-open"}
		}, "GST-NVSMI-027", "nouveau", "blacklist nouveau"},
		"Secure Boot": {func(g *backends.Guest, a *answers.Answers) {
			g.NVIDIA, g.SecureBoot, a.GPUDirect.Driver = nil, is(true), []string{"nvidia-headless-570-server-open"}
		}, "GST-SECBOOT-033", "Secure Boot is on", "mokutil"},
		"an installer that is not in the guest": {func(g *backends.Guest, a *answers.Answers) {
			runFile(g, a)
			g.Archives[a.GPUDirect.Driver[0]] = false
		}, "GST-NVSMI-027", "is not in the guest", "mount the share"},
		"an installer for other machines": {func(g *backends.Guest, a *answers.Answers) {
			runFile(g, a)
			g.Arch = "aarch64"
		}, "GST-NVSMI-027", "is for x86_64 machines, the guest is aarch64", "name the installer"},
		"nothing to build the driver with": {func(g *backends.Guest, a *answers.Answers) {
			runFile(g, a)
			a.GPUDirect.Perftest = ""
			g.Headers, g.BuildTools, g.Kernel, g.PackageManager = is(false), []string{"make"}, "5.15.0-1-generic", "apt"
		}, "GST-NVSMI-027", "has no gcc, no headers of kernel 5.15.0-1-generic", "apt-get install gcc make dkms linux-headers-5.15.0-1-generic"},
		"nouveau and an installer": {func(g *backends.Guest, a *answers.Answers) {
			runFile(g, a)
			g.Loaded = append(g.Loaded, "nouveau")
		}, "GST-NVSMI-027", "nouveau", "blacklist nouveau"},
		"perftest without CUDA's headers": {func(g *backends.Guest, a *answers.Answers) {
			runFile(g, a)
			g.CUDAHeader = ""
		}, "GST-PERFTEST-023", "cuda.h is not there", "cuda-driver-dev"},
		"perftest without those of verbs": {func(g *backends.Guest, a *answers.Answers) {
			runFile(g, a)
			g.PackageManager, g.BuildTools = "dnf", []string{"gcc", "make", "pci/pci.h"}
		}, "GST-PERFTEST-023", "has no infiniband/verbs.h", "dnf install gcc make rdma-core-devel pciutils-devel"},
		"closed modules without peer memory in ib_core": {func(g *backends.Guest, _ *answers.Answers) {
			g.NVIDIA.DMABuf, g.PeerAPI = false,
				is(false)
		},
			"GST-PEERMEM-028", "would not load", "MLNX_OFED or DOCA first"},
		"both modules": {func(g *backends.Guest, _ *answers.Answers) {
			g.Loaded = append(g.Loaded, "nvidia_peermem", "nv_peer_mem")
		},
			"GST-PEERMEM-028", "both loaded", "nvidia-peer-memory-dkms"},
		"nothing at all": {func(g *backends.Guest, _ *answers.Answers) {
			g.NVIDIA.DMABuf, g.NVIDIA.Driver, g.Available = false, "418.40", held(g.Available, "nvidia_peermem")
		}, "GST-PEERMEM-028", "driver 418.40 has neither", "470"},
	} {
		t.Run(name, func(t *testing.T) {
			inv := newGPUs(1)
			a := gpuAnswers(inv)
			c.edit(&inv.Guests[0], a)
			all := refusals(t, a, inv, plan.Options{})
			if r := all[0]; len(all) != 1 || r.Target.String() != "guest/vm-01" || r.Check != c.check || !strings.Contains(r.Why, c.why) ||
				!strings.Contains(r.Remedy, c.remedy) {
				t.Errorf("%+v", all)
			}
		})
	}
}

// Persistence mode is set where the answers name the driver: after its installation, or if it is installed and the mode is off.
func TestPersistenceMode(t *testing.T) {
	off, on := false, true
	for name, c := range map[string]struct {
		named bool
		mode  *bool // nil: no driver
		from  backends.Value
		want  bool
	}{
		"no driver yet":         {true, nil, backends.Unknown(guestID("vm-01", backends.KindPackages, "nvidia")), true},
		"off":                   {true, &off, backends.Absent, true},
		"on":                    {true, &on, backends.ValueOf(true), false},
		"the operator's driver": {false, &off, backends.Absent, false},
	} {
		t.Run(name, func(t *testing.T) {
			inv := newGPUs(1)
			a := gpuAnswers(inv)
			g := &inv.Guests[0]
			if c.named {
				a.GPUDirect.Driver = []string{"nvidia-headless-570-server-open"}
			}
			if c.mode == nil {
				g.NVIDIA = nil
			} else {
				g.NVIDIA.Devices = []backends.GuestGPU{{Persistent: c.mode}}
				if *c.mode {
					g.GPUUnit = backends.GPUUnitEnabled
				}
			}
			got := mustBuild(t, a, inv, plan.Options{}).Change(guestID("vm-01", backends.KindGPUPersist, ""))
			if (got != nil) != c.want || got != nil && c.mode == nil && got.From != c.from {
				t.Errorf("%+v", got)
			}
		})
	}
}

// Whether a guest that is off has the driver is unknown: persistence mode is planned when the guest has been asked, after the driver.
// The first stage of a resume would otherwise set it before the driver is installed.
func TestPersistenceModeOfAGuestThatIsOff(t *testing.T) {
	inv := newGPUs(1)
	inv.VMs[0].Power = "poweredOff"
	inv.Guests = nil
	a := gpuAnswers(inv)
	a.GPUDirect.Driver = []string{"nvidia-headless-570-server-open"}
	got := mustBuild(t, a, inv, plan.Options{}).Change(guestID("vm-01", backends.KindGPUPersist, ""))
	if got == nil || got.To.Known() {
		t.Errorf("%+v", got)
	}
}

// A driver that the answers name is installed after the RDMA packages; the changes that depend on it are planned when it is
// installed.
func TestTheDriverIsInstalledFromNamedPackages(t *testing.T) {
	inv := newGPUs(1)
	a := gpuAnswers(inv)
	inv.Guests[0].NVIDIA, a.GPUDirect.Driver = nil, []string{"nvidia-utils-570-server", "nvidia-headless-570-server-open"}
	p := mustBuild(t, a, inv, plan.Options{})
	driver, rdma := p.Change(guestID("vm-01", backends.KindPackages, "nvidia")), guestID("vm-01", backends.KindPackages, "rdma")
	if driver == nil ||
		driver.To != backends.ValueOf(backends.PackageSpec{Installed: []string{"nvidia-headless-570-server-open", "nvidia-utils-570-server"}}) ||
		!slices.Contains(driver.After, rdma) {
		t.Fatalf("%+v", driver)
	}
	peer := p.Change(guestID("vm-01", backends.KindModules, "gpu"))
	if peer == nil || peer.To.Known() || !slices.Contains(peer.After, driver.ID()) {
		t.Errorf("%+v", peer)
	}
	if persist := p.Change(guestID("vm-01", backends.KindPersist, "")); persist.To.Known() {
		t.Errorf("at boot %s, which hangs on the driver", persist.To)
	}
	if _, err := p.Graph(); err != nil {
		t.Error(err)
	}
}

// In a rollback, the driver is removed before the packages that it was built with.
func TestTheDriverGoesFirst(t *testing.T) {
	inv := newGPUs(1)
	inv.Guests[0].Packages = map[string]string{"rdma-core": "39", "nvidia-utils-570-server": "570"}
	none := backends.ValueOf(backends.PackageSpec{Installed: []string{}})
	var priors []plan.Prior
	for _, set := range [][2]string{{"rdma", "rdma-core"}, {"nvidia", "nvidia-utils-570-server"}} {
		is := backends.ValueOf(backends.PackageSpec{Installed: []string{set[1]}})
		priors = append(priors, plan.Prior{Prior: none, Found: is, Change: plan.Change{From: none, To: is,
			Setting: backends.Setting{Target: backends.GuestRef("vm-01"), Kind: backends.KindPackages, Name: set[0]}}})
	}
	p, err := rollback.Build(priors, inv, rollback.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g, err := p.Graph()
	if err != nil {
		t.Fatal(err)
	}
	driver, rdma := slices.Index(g.Order, guestID("vm-01", backends.KindPackages, "nvidia")),
		slices.Index(g.Order, guestID("vm-01", backends.KindPackages, "rdma"))
	if driver < 0 || rdma < 0 || driver > rdma {
		t.Errorf("order %q", g.Order)
	}
}

// runFile sets up a guest with all build dependencies of the driver and perftest, and answers that name their files.
func runFile(g *backends.Guest, a *answers.Answers) {
	a.GPUDirect.Driver, a.GPUDirect.Perftest = []string{"/mnt/share/NVIDIA-Linux-x86_64-570.133.20.run"}, "/mnt/share/perftest-24.10.tar.gz"
	g.NVIDIA, g.CUDATests, g.Arch, g.Headers, g.CUDAHeader, g.Built = nil, nil, "x86_64", is(true), "/usr/local/cuda/include/cuda.h",
		map[string]backends.Value{}
	g.Archives = map[string]bool{a.GPUDirect.Driver[0]: true, a.GPUDirect.Perftest: true}
	g.BuildTools = []string{"gcc", "make", "infiniband/verbs.h", "rdma/rdma_cma.h", "infiniband/umad.h", "pci/pci.h"}
}

// NVIDIA's installer comes after the guest's RDMA stack, and perftest with CUDA after the driver whose libcuda it uses; an existing
// build is not repeated, an interrupted one is.
func TestSoftwareFromFiles(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(g *backends.Guest, a *answers.Answers)
		want []string // of both, those that are planned
		note string
	}{
		"neither is there": {func(*backends.Guest, *answers.Answers) {}, []string{"nvidia", "perftest"}, "has no dkms"},
		"the driver is there": {func(g *backends.Guest, _ *answers.Answers) {
			g.NVIDIA = &backends.NVIDIA{Driver: "570.133.20", DMABuf: true}
		}, []string{"perftest"}, ""},
		"both are there": {func(g *backends.Guest, _ *answers.Answers) {
			g.NVIDIA, g.CUDATests = &backends.NVIDIA{Driver: "570.133.20", DMABuf: true}, &backends.CUDAPerftest{DMABuf: true}
		}, nil, "by DMA-BUF"},
		"both were cut short": {func(g *backends.Guest, a *answers.Answers) {
			g.NVIDIA, g.CUDATests = &backends.NVIDIA{Driver: "570.133.20", DMABuf: true}, &backends.CUDAPerftest{DMABuf: true}
			g.Built = map[string]backends.Value{"nvidia": backends.Partial(a.GPUDirect.Driver[0]),
				"perftest": backends.Partial(a.GPUDirect.Perftest)}
		}, []string{"nvidia", "perftest"}, ""},
		"no source of perftest is named": {func(_ *backends.Guest, a *answers.Answers) { a.GPUDirect.Perftest = "" }, []string{"nvidia"},
			"host memory alone is measured, GPU memory is not (gpudirect.perftest"},
	} {
		inv := newGPUs(1)
		a := gpuAnswers(inv)
		runFile(&inv.Guests[0], a)
		c.edit(&inv.Guests[0], a)
		p := mustBuild(t, a, inv, plan.Options{})
		var got []string
		for _, name := range []string{"nvidia", "perftest"} {
			if ch := p.Change(guestID("vm-01", backends.KindBuild, name)); ch != nil {
				got = append(got, name)
				if !slices.Contains(ch.After, guestID("vm-01", backends.KindPackages, "rdma")) &&
					p.Change(guestID("vm-01", backends.KindPackages, "rdma")) != nil {
					t.Errorf("%s does not wait for the RDMA stack: %q", name, ch.After)
				}
			}
		}
		if !slices.Equal(got, c.want) || !strings.Contains(strings.Join(p.Notes, "\n"), c.note) {
			t.Errorf("%s: %q, want %q; notes %q", name, got, c.want, p.Notes)
		}
		if len(c.want) == 2 && !slices.Contains(p.Change(guestID("vm-01", backends.KindBuild, "perftest")).After,
			guestID("vm-01", backends.KindBuild, "nvidia")) {
			t.Errorf("%s: perftest does not wait for the driver", name)
		}
	}
}

// What decides whether a driver works and was not read is told, and refuses nothing.
func TestUnreadFactsOfADriverAreTold(t *testing.T) {
	for _, read := range []*bool{nil, is(false)} {
		inv := newGPUs(1)
		a, g := gpuAnswers(inv), &inv.Guests[0]
		g.NVIDIA, g.SecureBoot, g.Available, g.Loaded, a.GPUDirect.Driver = nil, read, nil, nil, []string{"nvidia-headless-570-server-open"}
		notes := strings.Join(mustBuild(t, a, inv, plan.Options{}).Notes, "\n")
		if strings.Contains(notes, "vm-01: did not tell whether Secure Boot is on") != (read == nil) ||
			!strings.Contains(notes, "vm-01: has a kernel whose modules were not read") {
			t.Error(notes)
		}
	}
}

// If nouveau uses the GPU, the guest is rebooted without it before anything else is done inside it, and the state of the kernel is
// read after that. None of this is planned if the driver is installed, Secure Boot refuses it, or the program runs in that guest.
func TestNouveauIsKeptFromTheGPU(t *testing.T) {
	for name, c := range map[string]struct {
		edit  func(g *backends.Guest, o *plan.Options, inv *backends.Inventory)
		check string // that refuses; "-" if nothing about nouveau is planned, "" if it is
	}{
		"planned":            {func(*backends.Guest, *plan.Options, *backends.Inventory) {}, ""},
		"half done":          {func(g *backends.Guest, _ *plan.Options, _ *backends.Inventory) { g.Nouveau.Kept = true }, ""},
		"no initramfs-tools": {func(g *backends.Guest, _ *plan.Options, _ *backends.Inventory) { g.Nouveau.Renewable = false }, "GST-NVSMI-027"},
		"Secure Boot":        {func(g *backends.Guest, _ *plan.Options, _ *backends.Inventory) { g.SecureBoot = is(true) }, "GST-SECBOOT-033"},
		"our own guest": {func(_ *backends.Guest, o *plan.Options, inv *backends.Inventory) {
			inv.VM("vm-01").IPs, o.Ourselves = []string{"10.9.9.9"}, []string{"10.9.9.9"}
		}, "GST-NVSMI-027"},
		"the driver is there": {func(g *backends.Guest, _ *plan.Options, _ *backends.Inventory) {
			g.NVIDIA = &backends.NVIDIA{Driver: "570.86.15", DMABuf: true}
		}, "-"},
	} {
		t.Run(name, func(t *testing.T) {
			inv := newGPUs(1)
			a, o := gpuAnswers(inv), plan.Options{}
			g := &inv.Guests[0]
			g.NVIDIA, g.Loaded, g.Nouveau, a.GPUDirect.Driver = nil, append(g.Loaded, "nouveau"), &backends.Nouveau{Loaded: true, Renewable: true},
				[]string{"nvidia-headless-570-server-open"}
			c.edit(g, &o, inv)
			if c.check != "" && c.check != "-" {
				if all := refusals(t, a, inv, o); all[0].Check != c.check {
					t.Errorf("%+v", all)
				}
				return
			}
			p := mustBuild(t, a, inv, o)
			id := guestID("vm-01", backends.KindNouveau, "")
			change := p.Change(id)
			if c.check == "-" {
				if change != nil {
					t.Errorf("planned: %+v", change)
				}
				return
			}
			driver, modules := p.Change(guestID("vm-01", backends.KindPackages, "nvidia")), p.Change(guestID("vm-01", backends.KindModules, "rdma"))
			if change == nil || change.From != g.Nouveau.Value() || !slices.Contains(change.Disrupts, plan.GuestReboot) || driver == nil ||
				!slices.Contains(driver.After, id) || modules == nil || modules.From.Known() {
				t.Fatalf("%+v\n%+v\n%+v", change, driver, modules)
			}
		})
	}
}

// One perftest is built in all guests if their own are not known to be equal, and in the remaining guests once it is built in one.
func TestSamePerftest(t *testing.T) {
	const source = "/mnt/share/perftest-24.10.tar.gz"
	for name, c := range map[string]struct {
		source   string
		versions [2]string
		edit     func(inv *backends.Inventory)
		want     int // guests in which it is built
		said     string
	}{
		"each has its own":  {answers.OwnPerftest, [2]string{"5.60", "6.06"}, nil, 0, ""},
		"they differ":       {source, [2]string{"5.60", "6.06"}, nil, 2, ""},
		"they are the same": {source, [2]string{"6.06", "6.06"}, nil, 0, "All guests have perftest 6.06"},
		"one has none yet":  {source, [2]string{"6.06", ""}, nil, 2, ""},
		"a URL, whatever is there": {"https://mirror/perftest.tgz", [2]string{"5.60", "6.06"},
			func(inv *backends.Inventory) { inv.Guests[0].Archives = nil }, 2, ""},
		"the file is not there": {source, [2]string{"5.60", "6.06"}, func(inv *backends.Inventory) { inv.Guests[0].Archives[source] = false },
			0, source + " is not in the guest"},
		"a guest has no compiler": {source, [2]string{"5.60", "6.06"},
			func(inv *backends.Inventory) { inv.Guests[1].BuildTools = []string{"make"} }, 0, "which has no gcc"},
		"one of two is built": {source, [2]string{"6.06", "6.06"},
			func(inv *backends.Inventory) { inv.Guests[0].Built["perftest-same"] = backends.ValueOf(source) }, 1, ""},
		"nothing is to be measured": {source, [2]string{"5.60", "6.06"}, nil, 0, ""},
	} {
		inv := newInventory(2)
		a := newAnswers(inv)
		a.Measure.Perftest = c.source
		if name == "nothing is to be measured" {
			a.Measure.Bandwidth, a.Measure.Latency = false, false
		}
		for i := range inv.Guests {
			g := &inv.Guests[i]
			g.Perftest, g.Built, g.Archives = c.versions[i], map[string]backends.Value{}, map[string]bool{source: true}
			g.BuildTools = []string{"gcc", "make", "infiniband/verbs.h", "rdma/rdma_cma.h", "infiniband/umad.h", "pci/pci.h"}
		}
		if c.edit != nil {
			c.edit(inv)
		}
		p, err := recipe.Build(a, inv, plan.Options{})
		if err != nil {
			p = &plan.Plan{Notes: []string{err.Error()}}
		}
		said := strings.Join(p.Notes, "\n")
		got := 0
		for _, vm := range []string{"vm-01", "vm-02"} {
			if ch := p.Change(guestID(vm, backends.KindBuild, backends.BuildSamePerftest)); ch != nil {
				got++
			}
		}
		if got != c.want || !strings.Contains(said, c.said) {
			t.Errorf("%s: built in %d guests, want %d; %s", name, got, c.want, said)
		}
	}
}
