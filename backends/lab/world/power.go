package world

import (
	"cmp"
	"fmt"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab/world/fault"
)

// PowerOn powers on a VM. Its guest is up after VMBoot. It fails if the VM is on or its host does not respond.
func (w *World) PowerOn(vm string) error {
	return w.setPower(vm, func(s *State, v *VM) error {
		if v.On {
			return fmt.Errorf("%s is already powered on", vm)
		}
		if h := s.Host(v.Host); h == nil || h.State != Up || h.Maintenance {
			return fmt.Errorf("the host %s of %s cannot run it now", v.Host, vm)
		}
		if err := s.AssignVFs(v); err != nil {
			return err
		}
		if err := s.AssignDevices(v); err != nil {
			return err
		}
		v.On, v.BootTime = true, time.Now()
		lost := w.Faults.Disconnects(vm)
		for i, a := range v.Adapters {
			a.Connected = a.Start && !(lost && i > 0)
		}
		s.LogStart(v)
		s.LogStarted(v)
		w.bootLater(v)
		return nil
	}, "on")
}

// PowerOff powers off a VM.
func (w *World) PowerOff(vm string) error {
	return w.powerOff(vm, func(*VM) bool { return true })
}

// powerOff powers off a VM if meant returns true for it.
func (w *World) powerOff(vm string, meant func(*VM) bool) error {
	err := w.setPower(vm, func(_ *State, v *VM) error {
		if !v.On || !meant(v) {
			return fmt.Errorf("%s is already powered off", vm)
		}
		switchOff(v)
		return nil
	}, "off")
	if err == nil {
		w.guestWent(vm, false)
	}
	return err
}

// ShutdownGuest requests a guest shutdown; the VM is off shortly after. It fails if no guest is running. A second request
// during the shutdown has no effect.
func (w *World) ShutdownGuest(vm string) error {
	if err := w.needGuest(vm); err != nil {
		return err
	}
	var boot int
	w.View(func(s *State) { boot = s.VM(vm).boot })
	w.After(w.Timing.Shutdown, func() { _ = w.powerOff(vm, func(v *VM) bool { return v.boot == boot }) })
	return nil
}

// RebootGuest reboots the guest of a VM that is on. The guest goes down immediately and is up again after VMBoot.
func (w *World) RebootGuest(vm string) error {
	if err := w.needGuest(vm); err != nil {
		return err
	}
	return w.Reset(vm)
}

// Reset resets a VM that is on, regardless of the state of its guest.
func (w *World) Reset(vm string) error {
	err := w.Update(func(s *State) ([]Event, error) {
		v := s.VM(vm)
		if v == nil {
			return nil, noVM(vm)
		}
		if !v.On {
			return nil, fmt.Errorf("%s is powered off", vm)
		}
		v.Guest.Up, v.Guest.NICs = false, nil
		v.forget()
		w.bootLater(v)
		return []Event{{What: VMGuest, VM: v.Name, Detail: "down"}}, nil
	})
	if err == nil {
		w.guestWent(vm, false)
	}
	return err
}

func (w *World) needGuest(vm string) error {
	var err error
	w.View(func(s *State) {
		switch v := s.VM(vm); {
		case v == nil:
			err = noVM(vm)
		case !v.On || !v.Guest.Up:
			err = fmt.Errorf("no guest system answers in %s", vm)
		}
	})
	return err
}

func (w *World) setPower(vm string, f func(*State, *VM) error, detail string) error {
	return w.Update(func(s *State) ([]Event, error) {
		v := s.VM(vm)
		if v == nil {
			return nil, noVM(vm)
		}
		if err := f(s, v); err != nil {
			return nil, err
		}
		return []Event{{What: VMPower, VM: v.Name, Host: v.Host, Detail: detail}}, nil
	})
}

// forget removes what ends with a boot session.
func (v *VM) forget() { v.Guest.Entered, v.Guest.Names = "", nil }

func switchOff(v *VM) {
	v.On = false
	v.boot++
	v.Guest.Up, v.Guest.NICs = false, nil
	v.forget()
	for _, a := range v.Adapters {
		a.Connected, a.VF = false, ""
	}
}

// bootLater marks the guest as up after VMBoot, unless the VM is powered off or restarted before. The caller must hold the
// mutex.
func (w *World) bootLater(v *VM) {
	v.boot++
	boot, name := v.boot, v.Name
	w.afterLocked(w.Timing.VMBoot, func() {
		up, lost := false, false
		_ = w.Update(func(s *State) ([]Event, error) {
			v := s.VM(name)
			if v == nil || v.boot != boot || !v.On {
				return nil, nil
			}
			if why := s.cannotBoot(v); why != "" {
				lost = true
				switchOff(v)
				v.logf("vcpu-0", "Msg_Post: Error")
				v.logf("vcpu-0", "%s", why)
				return []Event{{What: VMPower, VM: name, Host: v.Host, Detail: "off: " + why}}, nil
			}
			if v.Guest.BIOS != (v.Firmware == "bios") {
				v.logf("vcpu-0", "[msg.Backdoor.OsNotFound] No operating system was found. If you have an operating system installation disc, "+
					"you can insert the disc into the system's CD-ROM drive and restart the virtual machine.")
				return nil, nil // the VM stays at the firmware's screen
			}
			up = true
			v.guestUp(time.Now())
			return []Event{{What: VMGuest, VM: name, Detail: "up"}}, nil
		})
		if up || lost {
			w.guestWent(name, up)
		}
	})
}

// cannotBoot returns the reason why a VM powers off right after power-on, or "" if it boots.
func (s *State) cannotBoot(v *VM) string {
	if s.outOfVectors(v) {
		return "failed to register interrupt (error code 195887110)"
	}
	return s.MMIO(v).short()
}

func (v *VM) guestUp(now time.Time) {
	v.Guest.Up = true
	v.Guest.Booted = now
	v.Guest.Boots++
	v.forget()
	v.Guest.NICs = v.bootNICs()
}

// RebootHost restarts a host. Its VMs lose power, and the host does not respond for HostReboot. Then it has a new boot time,
// and new module parameters take effect. If NeverReturns is set, or a fault rule with "do=reboot-never" matches, the host does
// not return.
func (w *World) RebootHost(host string) error {
	rule, never := w.Faults.NeverBack(fault.Target{Host: host})
	if never {
		w.Log.Note(Event{What: FaultApplied, Host: host, Detail: rule.Rule})
	}
	err := w.hostGoes(host, Rebooting, "reboot")
	if err != nil {
		return err
	}
	w.View(func(s *State) { never = never || s.Host(host).NeverReturns })
	if never {
		return nil
	}
	w.After(w.Timing.HostReboot, func() { _ = w.RestoreHost(host) })
	return nil
}

// LoseHost makes a host unresponsive until RestoreHost is called.
func (w *World) LoseHost(host string) error { return w.hostGoes(host, Down, "lost") }

func (w *World) hostGoes(host string, to HostState, reason string) error {
	var lost []string
	err := w.Update(func(s *State) ([]Event, error) {
		h := s.Host(host)
		if h == nil {
			return nil, noHost(host)
		}
		if h.State != Up {
			return nil, fmt.Errorf("%s is %s", host, h.State)
		}
		h.State = to
		events := []Event{{What: HostDown, Host: host, Detail: reason}}
		for _, v := range s.VMs {
			if v.Host == host && v.On {
				switchOff(v)
				lost = append(lost, v.Name)
				events = append(events, Event{What: VMPower, VM: v.Name, Host: host, Detail: "off"})
			}
		}
		return events, nil
	})
	for _, vm := range lost {
		w.guestWent(vm, false)
	}
	return err
}

// PowerCycle power cycles a host, as its BMC does.
func (w *World) PowerCycle(host string) error {
	if err := w.hostGoes(host, Down, "power cut"); err != nil {
		return err
	}
	return w.returns(host, true)
}

// RestoreHost ends a reboot or an outage. Pending settings take effect.
func (w *World) RestoreHost(host string) error { return w.returns(host, false) }

func (w *World) returns(host string, cut bool) error {
	return w.Update(func(s *State) ([]Event, error) {
		h := s.Host(host)
		if h == nil {
			return nil, noHost(host)
		}
		if h.State == Up {
			return nil, fmt.Errorf("%s is up", host)
		}
		h.State, h.BootTime, h.NeverReturns = Up, nextBoot(h.BootTime), false
		h.boot(cut)
		w.resync(host)
		return []Event{{What: HostUp, Host: host}}, nil
	})
}

// nextBoot returns the boot time of a host that boots now. A reboot of a real host takes minutes, so two boot times always
// differ by more than the jitter of the reported time. A lab host reboots in milliseconds, so it reports a slightly later time.
func nextBoot(last time.Time) time.Time {
	now := time.Now()
	if apart := last.Add(2 * time.Second); now.Before(apart) {
		return apart
	}
	return now
}

// Uptime returns the time since the last boot of the host.
func (h *Host) Uptime() time.Duration { return max(0, time.Since(h.BootTime)) }

// boot applies pending settings: VIBs, firmware, module parameters, passthrough, VFs. cut is true if the power of the cards was
// cut.
func (h *Host) boot(cut bool) {
	h.MST, h.RebootRequired = false, false
	h.HAAgent, h.Problems = h.HALater, h.ProblemsLater
	h.bootImage()
	for _, c := range h.Cards {
		c.Boot(cut)
		for _, p := range h.PNICs {
			if c.Has(p.PCI) && p.Firmware != "" {
				p.Firmware = c.Version
			}
		}
	}
	for _, m := range h.Modules {
		for _, p := range m.Parameters {
			p.Active = p.Value
		}
	}
	h.Shared, h.NextShared = cmp.Or(h.NextShared, h.Shared), ""
	for _, d := range h.PCI {
		d.PassthruActive = d.PassthruEnabled
	}
	h.detach()
	h.populate()
	for _, p := range h.PNICs {
		if p.RDMA != nil {
			p.RDMA.Stats = Counters{}
		}
	}
}
