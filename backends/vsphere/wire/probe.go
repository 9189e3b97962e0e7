package wire

import "context"

// Probe checks that a vCenter answers at the address and that its certificate is trusted, without logging in, so that a password
// is only requested for a server that exists.
func Probe(ctx context.Context, cfg Config) error {
	u, err := cfg.endpoint()
	if err != nil {
		return err
	}
	tr, err := newTrust(cfg, u.Hostname())
	if err != nil {
		return err
	}
	c := &Conn{cfg: cfg, host: u.Host, trust: tr}
	c.prepare(u)
	defer c.soap.CloseIdleConnections()
	return c.greet(ctx)
}
