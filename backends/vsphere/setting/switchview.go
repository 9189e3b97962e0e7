package setting

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/survey"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// viewAge is how long a view of a DVS is used for reading memberships, so that reading hundreds of hosts costs one call. Changes
// do not depend on it: vCenter refuses an outdated configVersion.
const viewAge = time.Second

// A switchView is a DVS as it was read.
type switchView struct {
	ref     place.Ref
	read    time.Time
	uuid    string
	version string // configVersion
	note    string
	spec    backends.SwitchSpec
	uplinks []string
	members map[place.Ref][]string // pNICs in uplink order
}

// switches caches views of DVSs for viewAge.
type switches struct {
	site  *site
	mu    sync.Mutex
	views map[place.Ref]*switchView
}

// recent returns a view that is at most viewAge old. Concurrent callers share one read.
func (w *switches) recent(ctx context.Context, dvs place.Ref) (*switchView, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if v := w.views[dvs]; v != nil && time.Since(v.read) < viewAge {
		return v, nil
	}
	return w.load(ctx, dvs)
}

func (w *switches) fresh(ctx context.Context, dvs place.Ref) (*switchView, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.load(ctx, dvs)
}

// forget discards a cached view.
func (w *switches) forget(dvs place.Ref) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.views, dvs)
}

func (w *switches) load(ctx context.Context, dvs place.Ref) (*switchView, error) {
	delete(w.views, dvs)
	o, err := w.site.conn.One(ctx, dvs, "uuid", "config")
	if err != nil {
		return nil, err
	}
	config, _ := o.Props["config"].(types.VMwareDVSConfigInfo)
	if base, ok := o.Props["config"].(types.DVSConfigInfo); ok {
		config.DVSConfigInfo = base
	}
	v := &switchView{
		ref: dvs, read: time.Now(), uuid: wire.Value[string](o, "uuid"), version: config.ConfigVersion, note: config.Description,
		uplinks: survey.UplinkNames(config.UplinkPortPolicy), members: map[place.Ref][]string{},
		spec: backends.SwitchSpec{
			Datacenter: w.site.places.Datacenter(dvs), Version: config.ProductInfo.Version, MTU: int(config.MaxMtu),
			NIOC: config.NetworkResourceManagementEnabled, Discovery: survey.Discovery(config.LinkDiscoveryProtocolConfig),
		},
	}
	v.spec.Uplinks = len(v.uplinks)
	for _, m := range config.Host {
		if m.Config.Host != nil {
			v.members[*m.Config.Host] = survey.BackingPNICs(m.Config.Backing)
		}
	}
	w.views[dvs] = v
	return v, nil
}

// look finds a DVS by target; nil without an error if there is none.
func (s *site) look(ctx context.Context, t backends.Ref, view func(context.Context, place.Ref) (*switchView, error)) (*switchView, error) {
	for range 2 {
		dvs, ok, err := s.places.Look(ctx, t)
		if err != nil || !ok {
			return nil, err
		}
		v, err := view(ctx, dvs)
		if !stale(err) {
			return v, err
		}
		// It was removed, and may have been created again under the same name.
		s.places.Drop(dvs)
	}
	return nil, wire.ErrGone
}

func stale(err error) bool {
	if err == nil {
		return false
	}
	if err == wire.ErrGone {
		return true
	}
	_, gone := wire.FaultOf(err).(*types.ManagedObjectNotFound)
	return gone
}

func same(a, b []string) bool { return slices.Equal(a, b) }
