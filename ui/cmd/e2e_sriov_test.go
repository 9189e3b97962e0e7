//go:build e2e

package cmd_test

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

// control reads or changes the lab from outside the program under test.
func (s *site) control(method, path string, into any) {
	s.t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(s.t.Context(), method, strings.TrimSuffix(s.value("GOVC_URL"), "/sdk")+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	res, err := client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode >= 300 {
		s.t.Fatalf("%s %s: %s", method, path, res.Status)
	}
	if into != nil {
		if err := json.NewDecoder(res.Body).Decode(into); err != nil {
			s.t.Fatal(err)
		}
	}
}

type outages struct {
	Outages []struct{ Host string }
	MaxDown int `json:"most_down"`
}

// holds checks in the lab's own log that each of the four hosts rebooted this many times, and never more than one at a time.
func (s *site) holds(reboots int) {
	s.t.Helper()
	var log outages
	s.control(http.MethodGet, "/lab/outages", &log)
	count := map[string]int{}
	for _, o := range log.Outages {
		count[o.Host]++
	}
	for i := 1; i <= 4; i++ {
		if host := fmt.Sprintf("esx-%02d", i); count[host] != reboots {
			s.t.Errorf("%s was down %d times, want %d", host, count[host], reboots)
		}
	}
	if log.MaxDown > 1 {
		s.t.Errorf("%d hosts were down at once", log.MaxDown)
	}
}

// hardwareFacts returns what mode sriov changes on hosts.
func (s *site) hardwareFacts() map[string]string {
	s.t.Helper()
	out := s.facts()
	c := s.client()
	var hosts []mo.HostSystem
	s.retrieve(c, "HostSystem", &hosts, "name", "config.powerSystemInfo", "config.pciPassthruInfo", "config.service")
	for _, h := range hosts {
		out["host "+h.Name+" power"] = h.Config.PowerSystemInfo.CurrentPolicy.ShortName
		for _, d := range h.Config.PciPassthruInfo {
			if pf, is := d.(*types.HostSriovInfo); is {
				out["host "+h.Name+" "+pf.Id] = fmt.Sprintf("%d of %d VFs, %d asked for", pf.NumVirtualFunction, pf.MaxVirtualFunctionSupported,
					pf.NumVirtualFunctionRequested)
			}
		}
		for _, svc := range h.Config.Service.Service {
			if svc.Key == "TSM-SSH" {
				out["host "+h.Name+" ssh"] = fmt.Sprint(svc.Running)
			}
		}
	}
	return out
}

// passed checks that every test was run and passed.
func passed(t *testing.T, out string, tests int) {
	t.Helper()
	res := result(t, out)
	if res.Status != "done" || len(res.Measurements) != tests {
		t.Errorf("%s with %d measurements", res.Status, len(res.Measurements))
	}
	for _, m := range res.Measurements {
		if m.Verdict != "pass" {
			t.Errorf("%+v", m)
		}
	}
}

func TestE2ESRIOVFromBareHosts(t *testing.T) {
	t.Parallel()
	s := serve(t, "--hosts", "4", "--vms", "4", "--scenario", "bare", "--reboot-time", "300ms")
	start := s.hardwareFacts()
	file := s.answers("sriov")
	plan, _ := s.must(0, "plan", "-f", file, "-o", "json")
	var doc struct {
		Changes []struct {
			Kind string
			To   any
		}
		Reboots struct{ Hosts int }
	}
	testclass.OK(t, json.Unmarshal([]byte(plan), &doc))
	unknown := 0
	for _, c := range doc.Changes {
		if c.Kind == "firmware" && strings.HasPrefix(fmt.Sprint(c.To), "unknown until ") {
			unknown++
		}
	}
	if doc.Reboots.Hosts != 8 || unknown != 4 {
		t.Errorf("%d reboots, %d unknown firmware settings in the plan", doc.Reboots.Hosts, unknown)
	}
	if diff := cmp.Diff(start, s.hardwareFacts()); diff != "" {
		t.Errorf("the plan has changed something (SSH?):\n%s", diff)
	}
	out, _ := s.must(0, "apply", "-f", file, "--yes", "-o", "json")
	passed(t, out, 8)
	s.holds(2)
	end := s.hardwareFacts()
	for i := 1; i <= 4; i++ {
		host, vm := fmt.Sprintf("host esx-%02d ", i), fmt.Sprintf("vm vm-%02d ", i)
		for key, want := range map[string]string{
			host + "power": "static", host + "0000:3b:00.0": "8 of 9 VFs, 8 asked for", host + "ssh": start[host+"ssh"],
			host + "maintenance": "false", vm + "memory": "locked true reserved 8192 of 8192", vm + "power": "poweredOn",
		} {
			if end[key] != want {
				t.Errorf("%s is %q, want %q", key, end[key], want)
			}
		}
		if got := end[vm+"adapters"]; strings.Count(got, "VirtualSriovEthernetCard on RDMA-PG start true") != 1 {
			t.Errorf("%sadapters: %s", vm, got)
		}
	}
	for _, v := range s.guests() {
		s.restart(v)
		if got := s.guest(v, "ibv_devinfo"); !strings.Contains(got, "PORT_ACTIVE") {
			t.Errorf("%s after a reboot:\n%s", v.Name, got)
		}
	}
	again, _ := s.must(0, "apply", "-f", file, "--yes", "-o", "json")
	if res := result(t, again); res.Status != "unchanged" {
		t.Errorf("a second apply: %+v", res)
	}
	_, said := s.must(0, "rollback", "--yes")
	if !strings.Contains(said, "install mft") || !strings.Contains(said, "4 host reboots") {
		t.Errorf("the rollback does not say what stays and what it costs:\n%s", tail(said))
	}
	s.holds(3)
	if diff := cmp.Diff(start, s.hardwareFacts()); diff != "" {
		t.Errorf("before and after the rollback:\n%s", diff)
	}
}

func TestE2ESRIOVFromHalfWay(t *testing.T) {
	for scenario, reboots := range map[string]int{"sriov-half": 1, "sriov-api": 1, "sriov-ready": 0, "sriov-added": 1} {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			s := serve(t, "--hosts", "4", "--vms", "4", "--scenario", scenario, "--reboot-time", "300ms")
			var start map[string]string
			if scenario != "sriov-added" { // its VMs are off, so their guests cannot be read
				start = s.hardwareFacts()
			}
			out, _ := s.must(0, "apply", "-f", s.answers("sriov"), "--yes", "-o", "json")
			passed(t, out, 8)
			s.holds(reboots)
			again, _ := s.must(0, "plan", "-f", s.answers("sriov"), "--detailed-exitcode")
			if again == "" {
				t.Error("the plan says nothing")
			}
			if scenario == "sriov-added" {
				return // its VMs had an adapter that the run did not create
			}
			s.must(0, "rollback", "--yes")
			end := s.hardwareFacts()
			for key := range end {
				if scenario == "sriov-half" && strings.Contains(key, " 0000:") {
					delete(end, key) // the firmware change that was pending has become effective with the reboot
				}
			}
			if diff := cmp.Diff(start, end); diff != "" {
				t.Errorf("before and after the rollback:\n%s", diff)
			}
		})
	}
}

func TestE2ESRIOVHostThatNeverReturns(t *testing.T) {
	t.Parallel()
	s := serve(t, "--hosts", "4", "--vms", "4", "--scenario", "sriov-half", "--reboot-time", "300ms", "--fault", "host=esx-02,do=reboot-never")
	file := s.answers("sriov")
	b := testclass.Read(t, file)
	text := regexp.MustCompile(`(?m)^guest:$`).ReplaceAllString(string(b), "run:\n  reboot: {max_unavailable: 1, timeout: 1m}\nguest:")
	testclass.Write(t, file, text)
	_, said := s.must(5, "apply", "-f", file, "--yes")
	if !strings.Contains(said, "esx-02: reboot: the host has not come back within 1m0s") ||
		!strings.Contains(said, "because esx-02 failed in its wave") {
		t.Errorf("it does not say so:\n%s", tail(said))
	}
	var log outages
	s.control(http.MethodGet, "/lab/outages", &log)
	if n := len(log.Outages); log.Outages[n-1].Host != "esx-02" || log.MaxDown != 1 {
		t.Errorf("outages %+v: a host went down after esx-02 had not come back", log)
	}
	s.control(http.MethodDelete, "/lab/fault", nil)
	s.control(http.MethodPost, "/lab/return?host=esx-02", nil)
	out, _ := s.must(0, "resume", "--yes", "-o", "json")
	passed(t, out, 8)
	s.holds(1)
}

// The host of vCenter is last, a VM that nothing moves is started again, and the run waits for vSAN.
func TestE2ESRIOVInAClusterOfOthers(t *testing.T) {
	for scenario, last := range map[string]string{"sriov-vcenter": "esx-01", "sriov-drs-manual": "", "sriov-vsan": ""} {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			s := serve(t, "--hosts", "3", "--vms", "6", "--scenario", scenario, "--reboot-time", "300ms")
			start := s.facts()
			file := s.answers("sriov")
			if scenario == "sriov-drs-manual" {
				b := testclass.Read(t, file)
				file = s.file("shutdown.yaml", append(b, "run: {bystanders: shutdown}\n"...))
			}
			s.must(0, "apply", "-f", file, "--yes")
			var log outages
			s.control(http.MethodGet, "/lab/outages", &log)
			if n := len(log.Outages); n != 3 || log.MaxDown != 1 || last != "" && log.Outages[n-1].Host != last {
				t.Errorf("%+v", log)
			}
			end := s.facts()
			for _, v := range []string{"billing-01", "vcenter-01"} {
				if key := "vm " + v + " power"; start[key] != end[key] {
					t.Errorf("%s is %s, it was %s", v, end[key], start[key])
				}
			}
		})
	}
}

// If the lab's machine has an address other than loopback, the VM that reports it is recognised as the machine that runs the
// program.
func TestE2ESRIOVOnTheHostThatRunsUs(t *testing.T) {
	t.Parallel()
	s := serve(t, "--hosts", "2", "--vms", "2", "--scenario", "sriov-ourselves")
	addrs, err := net.InterfaceAddrs()
	testclass.OK(t, err)
	code := 0
	if slices.ContainsFunc(addrs, func(a net.Addr) bool { n, is := a.(*net.IPNet); return is && !n.IP.IsLoopback() }) {
		code = 3
	}
	if _, said := s.must(code, "plan", "-f", s.answers("sriov")); code == 3 &&
		!strings.Contains(said, "runs jump-01, on which rdma-setup runs, and has to reboot") {
		t.Errorf("it does not say so:\n%s", tail(said))
	}
}

func TestE2ESRIOVRefusals(t *testing.T) {
	t.Parallel()
	for scenario, want := range map[string]string{
		"sriov-lockdown": "lockdown mode", "sriov-acceptance": "accepts only VMwareCertified and above",
		"sriov-image-draft": "edits its image; that draft stays as it is",
	} {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			s := serve(t, "--hosts", "2", "--vms", "2", "--scenario", scenario)
			start := s.hardwareFacts()
			if _, said := s.must(3, "apply", "-f", s.answers("sriov"), "--yes"); !strings.Contains(said, want) {
				t.Errorf("want %q:\n%s", want, tail(said))
			}
			if diff := cmp.Diff(start, s.hardwareFacts()); diff != "" {
				t.Errorf("it was not only refused:\n%s", diff)
			}
		})
	}
}

func TestE2ESRIOVWrongESXiPassword(t *testing.T) {
	t.Parallel()
	s := serve(t, "--hosts", "2", "--vms", "2", "--scenario", "bare", "--reboot-time", "300ms")
	start := s.hardwareFacts()
	for i, kv := range s.env {
		if strings.HasPrefix(kv, "RDMA_SETUP_SSH_KEY=") {
			s.env[i] = "RDMA_SETUP_ESXI_PASSWORD=wrong"
		}
	}
	s.env = append(s.env, "RDMA_SETUP_ESXI_PASSWORD=wrong")
	_, said := s.must(4, "apply", "-f", s.answers("sriov"), "--yes")
	if !strings.Contains(said, "esx-01: ") || !strings.Contains(said, "password") {
		t.Errorf("it does not say what is wrong:\n%s", tail(said))
	}
	if diff := cmp.Diff(start, s.hardwareFacts()); diff != "" {
		t.Errorf("something has changed:\n%s", diff)
	}
}
