// Package esxcli runs esxcli commands on hosts through vCenter, without SSH.
package esxcli

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/vmware/govmomi/cli/esx"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/settle"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// ErrNoCommand says that a host has no such esxcli command: an older ESXi, or a plug-in that is not installed.
var ErrNoCommand = errors.New("the host has no such esxcli command")

// A CLI runs esxcli commands on the hosts of one vCenter. It is safe for use by many goroutines. It keeps one executor
// a host: the first command costs two more calls, and one more for each new namespace.
type CLI struct {
	conn   *wire.Conn
	places *place.Places

	mu    sync.Mutex
	hosts map[types.ManagedObjectReference]*executor
}

type executor struct {
	mu  sync.Mutex // the library's executor keeps what it learns in a plain map
	run *esx.Executor
}

// New returns the esxcli of a vCenter's hosts.
func New(conn *wire.Conn, places *place.Places) *CLI {
	return &CLI{conn: conn, places: places, hosts: map[types.ManagedObjectReference]*executor{}}
}

// A Row is one record of an answer, by the field names of esxcli's own structured output (LinkStatus, not "Link
// Status"). A field with several values has them joined with commas.
type Row = map[string]string

// Run runs a command on a host and gives its records. A command that prints plain text gives one record with the field
// "output".
func (c *CLI) Run(ctx context.Context, host string, args ...string) ([]Row, error) {
	for try := 1; ; try++ {
		rows, err := c.once(ctx, host, args)
		if backends.KindOf(err) != backends.KindTransient || !reads(args) || try == settle.Tries || !settle.Pause(ctx, try) {
			return rows, err
		}
	}
}

// reads tells commands that change nothing: they may be repeated when the connection broke.
func reads(args []string) bool {
	words := command(args)
	return len(words) > 0 && (words[len(words)-1] == "list" || words[len(words)-1] == "get")
}

func (c *CLI) once(ctx context.Context, host string, args []string) ([]Row, error) {
	what := "run esxcli " + strings.Join(command(args), " ")
	ctx = wire.On(ctx, host)
	fail := func(err error) ([]Row, error) {
		return nil, wire.Explain(detailed(err), host, what)
	}
	if len(command(args)) < 2 {
		return nil, backends.Errorf(backends.KindUsage, host, "", "%s: not a namespace and a command", what)
	}
	ref, err := c.places.Find(ctx, backends.HostRef(host))
	if err != nil {
		return nil, err
	}
	e := c.of(ref)
	e.mu.Lock()
	if e.run == nil {
		e.run, err = esx.NewExecutor(ctx, c.conn.VIM(), mo.Reference(ref))
	}
	if err != nil {
		e.run = nil
		e.mu.Unlock()
		return fail(err)
	}
	info, err := e.run.CommandInfoMethod(ctx, esx.NewCommand(args))
	if err != nil {
		e.mu.Unlock()
		return fail(noCommand(err))
	}
	args, err = spell(args, info.Param)
	if err != nil {
		e.mu.Unlock()
		return fail(err)
	}
	req, _, err := e.run.NewRequest(ctx, args)
	e.mu.Unlock()
	if err != nil {
		return fail(err)
	}
	res := &esx.Response{}
	if err := e.run.Execute(ctx, req, res); err != nil {
		return fail(err)
	}
	return records(res), nil
}

func (c *CLI) of(host types.ManagedObjectReference) *executor {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hosts[host] == nil {
		c.hosts[host] = &executor{}
	}
	return c.hosts[host]
}

// command is the part of the arguments before the first option.
func command(args []string) []string {
	if i := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "-") }); i >= 0 {
		return args[:i]
	}
	return args
}

// spell checks options against what the host's command takes and writes them as the library wants them. The library
// ends the whole program on an option that it does not know, and puts values into XML as they are.
func spell(args []string, params []esx.CommandInfoParam) ([]string, error) {
	out := slices.Clone(command(args))
	rest := args[len(out):]
	for len(rest) > 0 {
		name, value, given := strings.Cut(rest[0], "=")
		rest = rest[1:]
		p := slices.IndexFunc(params, func(p esx.CommandInfoParam) bool {
			return slices.ContainsFunc(p.Aliases, func(a string) bool { return strings.TrimLeft(a, "-") == strings.TrimLeft(name, "-") })
		})
		switch {
		case !strings.HasPrefix(name, "-"):
			return nil, fmt.Errorf("unexpected argument %q", name)
		case p < 0:
			return nil, fmt.Errorf("%w: it takes no option %s", ErrNoCommand, name)
		case given:
		case params[p].Flag:
			value = "true"
		case len(rest) == 0:
			return nil, fmt.Errorf("option %s needs a value", name)
		default:
			value, rest = rest[0], rest[1:]
		}
		var safe strings.Builder
		if err := xml.EscapeText(&safe, []byte(value)); err != nil {
			return nil, err
		}
		out = append(out, "--"+strings.TrimLeft(name, "-")+"="+safe.String())
	}
	return out, nil
}

func noCommand(err error) error {
	var fault *esx.Fault
	if errors.As(err, &fault) || wire.FaultOf(err) == nil && !isTransport(err) {
		return fmt.Errorf("%w: %w", ErrNoCommand, detailed(err))
	}
	switch wire.FaultOf(err).(type) {
	case *types.NotFound, *types.MethodNotFound, *types.InvalidArgument:
		return fmt.Errorf("%w: %w", ErrNoCommand, detailed(err))
	}
	return err
}

func isTransport(err error) bool {
	return backends.KindOf(wire.Explain(err, "", "")) != backends.KindPermanent
}

// A complaint is esxcli's own words about what is wrong.
type complaint struct {
	text string
	err  error
}

func (c complaint) Error() string { return c.text }
func (c complaint) Unwrap() error { return c.err }

// detailed words a fault of esxcli. Its message is a mere key; the words are in the detail, as XML.
func detailed(err error) error {
	var fault *esx.Fault
	if !errors.As(err, &fault) || fault.Detail == "" || errors.Is(err, ErrNoCommand) {
		return err
	}
	var told []string
	d := xml.NewDecoder(strings.NewReader(fault.Detail))
	for {
		token, rerr := d.Token()
		if rerr != nil {
			break
		}
		if text, ok := token.(xml.CharData); ok {
			if words := strings.TrimSpace(string(text)); words != "" {
				told = append(told, words)
			}
		}
	}
	if len(told) == 0 {
		return err
	}
	return complaint{strings.Join(told, " "), err}
}

func records(res *esx.Response) []Row {
	if len(res.Values) == 0 {
		if res.String == "" {
			return nil
		}
		return []Row{{"output": res.String}}
	}
	out := make([]Row, 0, len(res.Values))
	for _, v := range res.Values {
		row := make(Row, len(v))
		for key, values := range v {
			row[key] = strings.Join(values, ",")
		}
		out = append(out, row)
	}
	return out
}
