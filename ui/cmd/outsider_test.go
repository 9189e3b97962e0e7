package cmd_test

import (
	"context"
	"net/url"
	"testing"

	"github.com/vmware/govmomi"
)

// outsider logs in another client with the account of env, and logs it out when the test ends.
func outsider(ctx context.Context, t testing.TB, env map[string]string) *govmomi.Client {
	t.Helper()
	u, err := url.Parse(env["GOVC_URL"])
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(env["GOVC_USERNAME"], env["GOVC_PASSWORD"])
	c, err := govmomi.NewClient(ctx, u, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Logout(context.WithoutCancel(ctx))
		c.CloseIdleConnections()
	})
	return c
}
