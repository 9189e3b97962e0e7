// Package vsphere reads and changes what a vCenter manages: hosts, distributed switches, port groups and the devices of VMs. It
// never guesses: what could not be read is missing and listed as a gap.
package vsphere

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/appliance"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/bracket"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/esxcli"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/image"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/setting"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/survey"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/system"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// Config says which vCenter to connect to, how to verify it, and how to log in.
type Config = wire.Config

// A Client is a logged-in session with one vCenter. It is safe for concurrent use.
type Client struct {
	conn   *wire.Conn
	places *place.Places
	*setting.Settings
	esxcli *esxcli.CLI
	system *system.System
	images *image.Images
}

// Dial connects to a vCenter, verifies it and logs in. Errors are of kind auth, unreachable or usage and have a hint.
func Dial(ctx context.Context, cfg Config) (*Client, error) {
	conn, err := wire.Dial(ctx, cfg)
	if err != nil {
		return nil, err
	}
	places := place.New(conn)
	conn.Names(places.Name)
	cli := esxcli.New(conn, places)
	return &Client{conn: conn, places: places, Settings: setting.New(conn, places), esxcli: cli, system: system.New(conn, places, cli),
		images: image.New(conn, places)}, nil
}

// Probe checks that a vCenter answers and that its certificate is trusted, without logging in.
func Probe(ctx context.Context, cfg Config) error { return wire.Probe(ctx, cfg) }

// Close logs out.
func (c *Client) Close() { c.conn.Close() }

// Calls returns the number of SOAP round trips so far.
func (c *Client) Calls() int { return int(c.conn.Cost().Calls) }

// Cost returns the traffic of the connection so far.
func (c *Client) Cost() wire.Cost { return c.conn.Cost() }

// Thumbprint returns the SHA-256 fingerprint that was pinned or accepted at Dial, to be stored in the answers.
func (c *Client) Thumbprint() string { return c.conn.Thumbprint() }

// Inventory reads the inventory. See backends.Scope for what it covers.
func (c *Client) Inventory(ctx context.Context, scope backends.Scope) (*backends.Inventory, error) {
	before := c.Calls()
	inv, index, err := survey.Read(ctx, c.conn, scope, func(index *place.Index) survey.AskRDMA {
		c.places.Adopt(index) // esxcli finds hosts by name
		return c.system.RDMADevices
	})
	if err != nil {
		return nil, err
	}
	c.places.Adopt(index)
	inv.APICalls = c.Calls() - before
	return inv, nil
}

// SetterOptions limits setters. The zero value is the default.
type SetterOptions struct {
	Parallel int           // hosts that one SetMany changes in parallel; default 16
	Wait     time.Duration // bounds the wait for a host that an image reboots, in a simulation; zero: no bound
}

// Setters returns the setters for every kind of setting that vCenter manages. They are safe for concurrent use.
func (c *Client) Setters(options ...SetterOptions) map[backends.Kind]backends.Setter {
	var o SetterOptions
	if len(options) > 0 {
		o = options[0]
	}
	set := c.Settings.Setters(o.Parallel)
	maps.Copy(set, c.system.Setters())
	maps.Copy(set, c.images.Setters(o.Wait))
	return set
}

// Movable checks, without moving anything, which of some running VMs of a host cannot move to any other host of its cluster by
// vMotion. It returns one error for each, of kind refused if the VM is the cause.
func (c *Client) Movable(ctx context.Context, host string, vms []string) []error {
	return bracket.Movable(ctx, c.conn, c.places, backends.HostRef(host), vms)
}

// ErrNoCommand means that a host does not have an esxcli command: an older ESXi, or a plug-in that is not installed.
var ErrNoCommand = esxcli.ErrNoCommand

// Esxcli runs an esxcli command on a host through the API, without SSH, and returns its records: one map per record, keyed by the
// field names of esxcli's structured output (LinkStatus, not "Link Status"). Multiple values of a field are joined with commas; a
// command that prints plain text returns one record with the field "output".
func (c *Client) Esxcli(ctx context.Context, host string, args ...string) ([]map[string]string, error) {
	return c.esxcli.Run(ctx, host, args...)
}

// Depots sets the files on datastores (.vib, .zip, absolute paths) from which KindComponent installs, and the URLs and
// files of offline bundles from which KindImageComponent takes what vCenter does not have.
func (c *Client) Depots(components []string) {
	c.system.Depots(slices.DeleteFunc(slices.Clone(components), nic.ForImage))
	c.images.Depots(slices.DeleteFunc(slices.Clone(components), func(p string) bool { return !nic.ForImage(p) }))
}

// Images reads the Lifecycle Manager images that manage the clusters of these hosts, and the components of the hosts. It makes no
// calls for clusters without an image.
func (c *Client) Images(ctx context.Context, inv *backends.Inventory, hosts []*backends.Host) {
	c.images.Read(ctx, inv, hosts)
}

// SystemOptions are the limits and questions of a survey of host systems.
type SystemOptions = system.Options

// System reads facts that no property of the API contains, with esxcli through the API and never over SSH, into the System of the
// hosts.
func (c *Client) System(ctx context.Context, hosts []*backends.Host, o SystemOptions) {
	c.system.Survey(ctx, hosts, o)
}

// Neighbours returns the switch port connected to each pNIC of a host, by device name, as announced by the physical switch over
// LLDP or CDP. A pNIC without an announcement has no entry.
func (c *Client) Neighbours(ctx context.Context, host string) (map[string]backends.Neighbour, error) {
	return c.system.Neighbours(ctx, host)
}

// BracketOptions are the time limits of brackets and what the operator has consented to.
type BracketOptions = bracket.Options

// Brackets returns the brackets for changes that need a VM powered off or a host evacuated. With zero options nothing is powered
// off by force.
func (c *Client) Brackets(options ...BracketOptions) map[backends.BracketKind]backends.Bracket {
	var o BracketOptions
	if len(options) > 0 {
		o = options[0]
	}
	if o.Resync == nil {
		o.Resync = c.system.Resync
	}
	return bracket.Of(c.conn, c.places, o)
}

// OffAgain waits until a VM that was powered on powers off by itself, as happens if its VF gets no interrupt vectors, and then
// returns an error; nil if ctx ends first.
func (c *Client) OffAgain(ctx context.Context, vm string) error {
	return bracket.OffAgain(ctx, c.conn, c.places, vm)
}

// ShutdownLimit is how long a guest may take to shut down.
const ShutdownLimit = bracket.ShutdownLimit

// VMOff waits until a VM whose guest is shutting down is off, with the limit of a bracket; otherwise it returns an error.
func (c *Client) VMOff(ctx context.Context, vm string) error {
	return bracket.Off(ctx, c.conn, c.places, vm)
}

// HostBack waits until a disconnected host is connected again, at most for limit; otherwise it returns an error of kind
// unreachable.
func (c *Client) HostBack(ctx context.Context, host string, limit time.Duration) error {
	return bracket.Back(ctx, c.conn, c.places, host, limit)
}

// Deploy creates a VM, powered off, from an appliance.
func (c *Client) Deploy(ctx context.Context, f *appliance.File, d backends.Deployment, warn func(string),
	progress backends.Progress) (id string, err error) {
	id, err = appliance.Deploy(ctx, c.conn, f, d, warn, progress)
	c.places.Expire(backends.TypeVM)
	return id, err
}

// DeployTarget checks that an appliance with these port groups can be deployed, and returns the inventory path of its host.
func (c *Client) DeployTarget(ctx context.Context, f *appliance.File, d backends.Deployment, groups []string) (string, error) {
	return appliance.Target(ctx, c.conn, f, d, groups)
}

// RemoveDeployed destroys the VM that Deploy created.
func (c *Client) RemoveDeployed(ctx context.Context, id string) error {
	err := appliance.Remove(ctx, c.conn, id)
	c.places.Expire(backends.TypeVM)
	return err
}
