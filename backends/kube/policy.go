package kube

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// policyOf reads a NicClusterPolicy: its state, and the resources of its device plugins (Mellanox/network-operator,
// config/crd/bases/mellanox.com_nicclusterpolicies.yaml). An unreadable plugin configuration is ignored here; the plugin itself
// refuses it.
func policyOf(text []byte) (*backends.NICPolicy, error) {
	p := &backends.NICPolicy{}
	if len(bytes.TrimSpace(text)) == 0 {
		return p, nil
	}
	type plugin struct {
		Config string `json:"config"`
	}
	var doc struct {
		Spec struct {
			Shared *plugin `json:"rdmaSharedDevicePlugin"`
			Device *plugin `json:"sriovDevicePlugin"`
		} `json:"spec"`
		Status struct {
			State   string `json:"state"`
			Reason  string `json:"reason"`
			Applied []struct {
				Name    string `json:"name"`
				State   string `json:"state"`
				Message string `json:"message"`
			} `json:"appliedStates"`
		} `json:"status"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	p.State = cmp.Or(doc.Status.State, "notReady") // the operator has not processed it yet
	for _, a := range doc.Status.Applied {
		if a.State == "notReady" || a.State == "error" {
			p.Behind = append(p.Behind, strings.TrimSpace(a.Name+" "+a.State+" "+a.Message))
		}
	}
	if len(p.Behind) == 0 && p.State != "ready" && doc.Status.Reason != "" {
		p.Behind = []string{doc.Status.Reason}
	}
	type resource struct {
		Prefix string `json:"resourcePrefix"`
		Name   string `json:"resourceName"`
	}
	var config struct {
		Shared []resource `json:"configList"`
		Device []resource `json:"resourceList"`
	}
	for _, of := range []*plugin{doc.Spec.Shared, doc.Spec.Device} {
		if of != nil {
			_ = json.Unmarshal([]byte(of.Config), &config)
		}
	}
	for _, r := range config.Shared {
		p.Resources = append(p.Resources, cmp.Or(r.Prefix, "rdma")+"/"+r.Name)
	}
	for _, r := range config.Device {
		p.Resources = append(p.Resources, cmp.Or(r.Prefix, "intel.com")+"/"+r.Name) // README, Configurations: the default prefix
	}
	return p, nil
}
