// Package vsphere reads and changes a vCenter's world: hosts, distributed switches, port groups and the devices of
// VMs. It never guesses: what could not be read is absent and named.
package vsphere

import (
	"context"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/survey"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// Config says which vCenter to talk to and how it proves who it is.
type Config = wire.Config

// A Client is a logged-in session with one vCenter. It is safe for use by many goroutines.
type Client struct {
	conn   *wire.Conn
	places *place.Places
}

// Dial connects to a vCenter, verifies it and logs in. Errors are of kind auth, unreachable or usage and say how to go on.
func Dial(ctx context.Context, cfg Config) (*Client, error) {
	conn, err := wire.Dial(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &Client{conn: conn, places: place.New(conn)}, nil
}

// Close logs out.
func (c *Client) Close() { c.conn.Close() }

// Calls is the number of SOAP round trips so far.
func (c *Client) Calls() int { return int(c.conn.Cost().Calls) }

// Cost is what the connection has carried so far.
func (c *Client) Cost() wire.Cost { return c.conn.Cost() }

// Thumbprint is the SHA-256 fingerprint that was pinned or accepted at Dial, to be kept in the answers.
func (c *Client) Thumbprint() string { return c.conn.Thumbprint() }

// Inventory reads what is there. See backends.Scope for what it covers.
func (c *Client) Inventory(ctx context.Context, scope backends.Scope) (*backends.Inventory, error) {
	before := c.Calls()
	inv, index, err := survey.Read(ctx, c.conn, scope)
	if err != nil {
		return nil, err
	}
	c.places.Adopt(index)
	inv.APICalls = c.Calls() - before
	return inv, nil
}

// Setters gives the setters of every kind of setting that vCenter holds.
func (c *Client) Setters() map[backends.Kind]backends.Setter { return nil }

// Brackets gives what must be around changes that need a VM off or a host empty.
func (c *Client) Brackets() map[backends.BracketKind]backends.Bracket { return nil }

// AdapterMAC gives the MAC of a VM's adapter on a port group.
func (c *Client) AdapterMAC(ctx context.Context, vm, portGroup string) (string, error) {
	return "", backends.Errorf(backends.KindPermanent, vm, "", "the adapter is not read yet")
}

// A Lack is a privilege that the account does not have on an entity.
type Lack struct {
	Entity    string // its name
	Privilege string // Host.Config.NetService
}

// Missing tells which of the privileges the account lacks on the entities; with none given, on vCenter's root.
func (c *Client) Missing(ctx context.Context, privileges []string, entities ...backends.Ref) ([]Lack, error) {
	return nil, backends.Errorf(backends.KindPermanent, "", "", "privileges are not read yet")
}

// Esxcli runs an esxcli command on a host through the API and gives its records, one map a record.
func (c *Client) Esxcli(ctx context.Context, host string, args ...string) ([]map[string]string, error) {
	return nil, backends.Errorf(backends.KindPermanent, host, "", "esxcli is not called yet")
}
