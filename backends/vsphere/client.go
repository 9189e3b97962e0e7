// Package vsphere reads and changes a vCenter's world: hosts, distributed switches, port groups and the devices of
// VMs. It never guesses: what could not be read is absent and named.
package vsphere

import (
	"context"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/bracket"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/setting"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/survey"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// Config says which vCenter to talk to and how it proves who it is.
type Config = wire.Config

// A Client is a logged-in session with one vCenter. It is safe for use by many goroutines.
type Client struct {
	conn     *wire.Conn
	places   *place.Places
	settings *setting.Settings
	esxcli   esxcli
}

// Dial connects to a vCenter, verifies it and logs in. Errors are of kind auth, unreachable or usage and say how to go on.
func Dial(ctx context.Context, cfg Config) (*Client, error) {
	conn, err := wire.Dial(ctx, cfg)
	if err != nil {
		return nil, err
	}
	places := place.New(conn)
	return &Client{conn: conn, places: places, settings: setting.New(conn, places)}, nil
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

// Setters gives the setters of every kind of setting that vCenter holds. They are safe for use by many goroutines.
func (c *Client) Setters() map[backends.Kind]backends.Setter { return c.settings.Setters() }

// BracketOptions bound how long brackets wait and say what the operator has consented to.
type BracketOptions = bracket.Options

// Brackets gives what must be around changes that need a VM off or a host empty. Without options the defaults hold:
// nothing is powered off by force.
func (c *Client) Brackets(options ...BracketOptions) map[backends.BracketKind]backends.Bracket {
	var o BracketOptions
	if len(options) > 0 {
		o = options[0]
	}
	return bracket.Of(c.conn, c.places, o)
}

// AdapterMAC gives the MAC address (lower case, colons) of a VM's adapter on a port group, by which its guest is told
// which interface is meant.
func (c *Client) AdapterMAC(ctx context.Context, vm, portGroup string) (string, error) {
	return c.settings.AdapterMAC(ctx, vm, portGroup)
}
