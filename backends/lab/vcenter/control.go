package vcenter

import (
	"encoding/json"
	"net/http"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// control is the interface for tests and benchmarks in another process: it shows calls and events, and controls the lab.
//
//	GET  /lab/calls              calls by SOAP method
//	GET  /lab/log                all events
//	GET  /lab/outages            when hosts were down, and the largest number at the same time
//	POST /lab/fault?rule=RULE    adds a fault rule; DELETE /lab/fault removes all
//	POST /lab/expire             ends all sessions
//	POST /lab/link?host=H&nic=vmnic2&up=false
//	POST /lab/return?host=H      a host that is down answers again; POST /lab/down?host=H
//	POST /lab/power-cycle?host=H cuts the power of a host, which boots then
func (f *front) control(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	var err error
	switch r.Method + " " + r.URL.Path {
	case "GET /lab/calls":
		reply(w, f.world.Log.Calls())
		return
	case "GET /lab/log":
		reply(w, f.world.Log.Events())
		return
	case "GET /lab/outages":
		reply(w, struct {
			Outages []world.Outage `json:"outages"`
			MaxDown int            `json:"most_down"`
		}{f.world.Log.Outages(), f.world.Log.MaxDown()})
		return
	case "POST /lab/fault":
		err = f.world.Faults.Add(query.Get("rule"))
	case "DELETE /lab/fault":
		f.world.Faults.Clear()
	case "POST /lab/expire":
		f.expire()
	case "POST /lab/link":
		err = f.world.SetLink(query.Get("host"), query.Get("nic"), query.Get("up") == "true")
	case "POST /lab/return":
		err = f.world.RestoreHost(query.Get("host"))
	case "POST /lab/down":
		err = f.world.LoseHost(query.Get("host"))
	case "POST /lab/power-cycle":
		err = f.world.PowerCycle(query.Get("host"))
	default:
		http.NotFound(w, r)
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func reply(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	// The client has disconnected and cannot be notified.
	_ = json.NewEncoder(w).Encode(value)
}
