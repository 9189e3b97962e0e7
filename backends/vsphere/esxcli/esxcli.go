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
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/place"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// ErrNoCommand means that a host does not have an esxcli command: an older ESXi, or a plug-in that is not installed.
var ErrNoCommand = errors.New("the host has no such esxcli command")

// A CLI runs esxcli commands on the hosts of one vCenter. It is safe for concurrent use. The first command on a host costs one
// additional call, and Run one more for each new namespace.
type CLI struct {
	conn   *wire.Conn
	places *place.Places

	mu    sync.Mutex
	hosts map[types.ManagedObjectReference]*executor
}

// New returns a CLI for a vCenter's hosts.
func New(conn *wire.Conn, places *place.Places) *CLI {
	return &CLI{conn: conn, places: places, hosts: map[types.ManagedObjectReference]*executor{}}
}

// A Row is one record of a result, keyed by the field names of esxcli's structured output (LinkStatus, not "Link Status").
// Multiple values of a field are joined with commas.
type Row = map[string]string

// Run runs a command on a host and returns its records. A command that prints plain text returns one record with the field
// "output". It first reads from the host which options the command accepts.
func (c *CLI) Run(ctx context.Context, host string, args ...string) ([]Row, error) {
	words := command(args)
	return c.try(ctx, host, words, func(ctx context.Context, e *executor) ([]Arg, error) {
		params, err := e.params(ctx, c.conn, words)
		if err != nil {
			return nil, noCommand(err)
		}
		return spell(args, params)
	})
}

// An Arg is an argument of a command, by its name in the API (PowerCLI: Get-EsxCli -V2, CreateArgs).
type Arg struct {
	Name string `xml:"name"`
	Text string `xml:"-"`
	Val  string `xml:"val"` // Text in the API's encoding
}

// Ask runs a read-only command ("system module list") with arguments of known names, in one call.
func (c *CLI) Ask(ctx context.Context, host, words string, args ...Arg) ([]Row, error) {
	return c.try(ctx, host, strings.Fields(words), func(context.Context, *executor) ([]Arg, error) { return args, nil })
}

// try repeats read-only commands if the connection was lost.
func (c *CLI) try(ctx context.Context, host string, words []string, args func(context.Context, *executor) ([]Arg, error)) ([]Row, error) {
	what := "run esxcli " + strings.Join(words, " ")
	if len(words) < 2 {
		return nil, backends.Usagef(host, "", "%s: not a namespace and a command", what)
	}
	ctx = wire.On(ctx, host)
	reads := words[len(words)-1] == "list" || words[len(words)-1] == "get"
	for try := 1; ; try++ {
		rows, err := c.once(ctx, host, words, args)
		if err != nil {
			err = wire.Explain(detailed(err), host, what)
		}
		if backends.KindOf(err) != backends.KindTransient || !reads || try == wire.Tries || !wire.Pause(ctx, try) {
			return rows, err
		}
	}
}

func (c *CLI) once(ctx context.Context, host string, words []string, args func(context.Context, *executor) ([]Arg, error)) ([]Row, error) {
	ref, err := c.places.Find(ctx, backends.HostRef(host))
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	e := c.hosts[ref]
	if e == nil {
		e = &executor{namespaces: map[string][]esx.CommandInfoMethod{}}
		c.hosts[ref] = e
	}
	c.mu.Unlock()
	if err := e.find(ctx, c.conn, ref); err != nil {
		return nil, err
	}
	list, err := args(ctx, e)
	if err != nil {
		return nil, err
	}
	last := len(words) - 1
	res := &esx.Response{}
	err = e.execute(ctx, c.conn, "ha-cli-handler-"+strings.Join(words[:last], "-"), "vim.EsxCLI."+strings.Join(words, "."), list, res)
	if err != nil {
		return nil, err
	}
	return records(res), nil
}

// command returns the arguments before the first option.
func command(args []string) []string {
	if i := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "-") }); i >= 0 {
		return args[:i]
	}
	return args
}

// spell checks options against those that the host's command accepts.
func spell(args []string, params []esx.CommandInfoParam) ([]Arg, error) {
	var out []Arg
	rest := args[len(command(args)):]
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
		out = append(out, Arg{Name: params[p].Name, Text: value})
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

// A complaint is an error message of esxcli.
type complaint struct {
	text string
	err  error
}

func (c complaint) Error() string { return c.text }
func (c complaint) Unwrap() error { return c.err }

// detailed extracts the message from a fault of esxcli. The fault's own message is only a key; the text is in the detail, as XML.
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
