package esxcli

import (
	"context"
	stdxml "encoding/xml"
	"fmt"
	"strings"
	"sync"

	"github.com/vmware/govmomi/cli/esx"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
	"github.com/vmware/govmomi/vim25/xml"

	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// An executor is the managed object of one host that runs esxcli commands. govmomi has one too, but it makes an extra call before
// the first command of each namespace and requests an object that is not needed here.
type executor struct {
	mu         sync.Mutex
	ref        types.ManagedObjectReference
	namespaces map[string][]esx.CommandInfoMethod // as described by the host
}

// find reads the object from the host, once.
func (e *executor) find(ctx context.Context, conn *wire.Conn, host types.ManagedObjectReference) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ref.Value != "" {
		return nil
	}
	var res RetrieveManagedMethodExecuterBody
	err := conn.VIM().RoundTrip(ctx, &RetrieveManagedMethodExecuterBody{Req: &thisRequest{host}}, &res)
	if err == nil {
		e.ref = res.Res.Returnval
		conn.Part(host, e.ref)
	}
	return err
}

// params returns the parameters of a command, as described by the host.
func (e *executor) params(ctx context.Context, conn *wire.Conn, words []string) ([]esx.CommandInfoParam, error) {
	namespace, name := strings.Join(words[:len(words)-1], "."), words[len(words)-1]
	e.mu.Lock()
	defer e.mu.Unlock()
	methods, known := e.namespaces[namespace]
	if !known {
		var info esx.CommandInfo
		err := e.execute(ctx, conn, "ha-dynamic-type-manager-local-cli-cliinfo", "vim.CLIInfo.FetchCLIInfo",
			[]Arg{{Name: "typeName", Text: "vim.EsxCLI." + namespace}}, &info)
		if err != nil {
			return nil, err
		}
		methods = info.Method
		e.namespaces[namespace] = methods
	}
	for _, m := range methods {
		if m.Name == name {
			return m.Param, nil
		}
	}
	return nil, fmt.Errorf("method %q not found in name space %q", name, namespace)
}

// execute makes one call. A list is passed as one argument with several elements.
func (e *executor) execute(ctx context.Context, conn *wire.Conn, moid, method string, args []Arg, into any) error {
	req := &executeRequest{This: e.ref, Moid: moid, Version: "urn:vim25/5.0", Method: method}
	for _, a := range args {
		var text strings.Builder
		if err := stdxml.EscapeText(&text, []byte(a.Text)); err != nil {
			return err
		}
		element := "<" + a.Name + ">" + text.String() + "</" + a.Name + ">"
		if last := len(req.Argument) - 1; last >= 0 && req.Argument[last].Name == a.Name {
			req.Argument[last].Val += element
			continue
		}
		req.Argument = append(req.Argument, Arg{Name: a.Name, Val: element})
	}
	var res ExecuteSoapBody
	if err := conn.VIM().RoundTrip(ctx, &ExecuteSoapBody{Req: req}, &res); err != nil {
		return err
	}
	answer := res.Res.Returnval
	switch {
	case answer == nil:
		return nil
	case answer.Fault != nil:
		return &esx.Fault{Message: answer.Fault.Message, Detail: answer.Fault.Detail}
	}
	return xml.Unmarshal([]byte(answer.Response), into)
}

// The bodies of two methods that are missing in the public types of vSphere; govmomi keeps its own in an internal package.
type (
	// RetrieveManagedMethodExecuterBody has the name of the method on the wire.
	RetrieveManagedMethodExecuterBody struct {
		Req    *thisRequest `xml:"urn:vim25 RetrieveManagedMethodExecuter,omitempty"`
		Res    *refResponse `xml:"urn:vim25 RetrieveManagedMethodExecuterResponse,omitempty"`
		Fault_ *soap.Fault  `xml:"http://schemas.xmlsoap.org/soap/envelope/ Fault,omitempty"`
	}
	// ExecuteSoapBody has the name of the method on the wire.
	ExecuteSoapBody struct {
		Req    *executeRequest  `xml:"urn:vim25 ExecuteSoap,omitempty"`
		Res    *executeResponse `xml:"urn:vim25 ExecuteSoapResponse,omitempty"`
		Fault_ *soap.Fault      `xml:"http://schemas.xmlsoap.org/soap/envelope/ Fault,omitempty"`
	}

	thisRequest struct {
		This types.ManagedObjectReference `xml:"_this"`
	}
	refResponse struct {
		Returnval types.ManagedObjectReference `xml:"urn:vim25 returnval"`
	}
	executeRequest struct {
		This     types.ManagedObjectReference `xml:"_this"`
		Moid     string                       `xml:"moid"`
		Version  string                       `xml:"version"`
		Method   string                       `xml:"method"`
		Argument []Arg                        `xml:"argument,omitempty"`
	}
	executeResponse struct {
		Returnval *executeResult `xml:"urn:vim25 returnval"`
	}
	executeResult struct {
		Response string            `xml:"response,omitempty"`
		Fault    *executeSoapFault `xml:"fault,omitempty"`
	}
	executeSoapFault struct {
		Message string `xml:"faultMsg"`
		Detail  string `xml:"faultDetail,omitempty"`
	}
)

// Fault implements govmomi's interface for bodies.
func (b *RetrieveManagedMethodExecuterBody) Fault() *soap.Fault { return b.Fault_ }

// Fault implements govmomi's interface for bodies.
func (b *ExecuteSoapBody) Fault() *soap.Fault { return b.Fault_ }
