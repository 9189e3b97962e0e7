package hosts

import (
	"bytes"
	"encoding/xml"
	"reflect"
	"strings"

	"github.com/vmware/govmomi/cli/esx"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/esxcli"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/model"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/fault"
)

// RetrieveManagedMethodExecuterResponse and the types after it have the names of the XML elements in the answer. govmomi has
// such types only in an internal package.
type RetrieveManagedMethodExecuterResponse struct {
	Returnval types.ManagedObjectReference `xml:"urn:vim25 returnval"`
}

// RetrieveDynamicTypeManagerResponse is a response of HostSystem.
type RetrieveDynamicTypeManagerResponse struct {
	Returnval types.ManagedObjectReference `xml:"urn:vim25 returnval"`
}

// ExecuteSoapResponse is the response to an esxcli command.
type ExecuteSoapResponse struct {
	Returnval soapResult `xml:"urn:vim25 returnval"`
}

type soapResult struct {
	Response string     `xml:"response,omitempty"`
	Fault    *soapFault `xml:"fault,omitempty"`
}

type soapFault struct {
	Msg    string `xml:"faultMsg"`
	Detail string `xml:"faultDetail,omitempty"`
}

// RetrieveManagedMethodExecuter returns the object that runs esxcli commands.
func (m system) RetrieveManagedMethodExecuter(_ *simulator.Context, req any) soap.HasFault {
	return frame.Answer(RetrieveManagedMethodExecuterResponse{m.sub(this(req), "ManagedMethodExecuter", "managedMethodExecuter")}, nil)
}

// RetrieveDynamicTypeManager returns an object that clients request but that the lab does not use.
func (m system) RetrieveDynamicTypeManager(_ *simulator.Context, req any) soap.HasFault {
	return frame.Answer(RetrieveDynamicTypeManagerResponse{m.sub(this(req), "DynamicTypeManager", "dynamicTypeManager")}, nil)
}

func (m system) sub(host types.ManagedObjectReference, kind, prefix string) (ref types.ManagedObjectReference) {
	m.f.World.View(func(s *world.State) {
		if h := model.HostOf(s, host); h != nil {
			ref = model.SubRef(kind, prefix, h)
		}
	})
	return ref
}

// this returns the object of a request whose type is not exported by govmomi.
func this(req any) types.ManagedObjectReference {
	ref, _ := reflect.ValueOf(req).Elem().FieldByName("This").Interface().(types.ManagedObjectReference)
	return ref
}

type executer struct{ base }

// ExecuteSoap runs one esxcli command, or returns a description of the commands of a namespace.
func (m executer) ExecuteSoap(ctx *simulator.Context, req any) soap.HasFault {
	host, err := m.name(this(req))
	if err != nil {
		return frame.Answer(nil, err)
	}
	r := reflect.ValueOf(req).Elem()
	method, args := r.FieldByName("Method").String(), arguments(r.FieldByName("Argument"))
	if method == "vim.CLIInfo.FetchCLIInfo" {
		return frame.Answer(describe(strings.TrimPrefix(args["typeName"], "vim.EsxCLI.")), nil)
	}
	words := strings.Split(strings.TrimPrefix(method, "vim.EsxCLI."), ".")
	c, n := esxcli.Find(words)
	if c == nil || n != len(words) {
		return frame.Answer(failed("The object or item referred to could not be found."), nil)
	}
	if c.Writes {
		if err := m.f.Need(ctx, "Host.Config.Settings", this(req)); err != nil {
			return frame.Answer(nil, err)
		}
	}
	if rule, hit := m.f.World.Faults.Take(fault.Target{Host: host}, "", "esxcli "+strings.Join(words, " ")); hit && rule.Do == fault.DoFail {
		return frame.Answer(failed(rule.Arg), nil)
	}
	answer, err := c.Run(m.f.World, host, args)
	if err != nil {
		return frame.Answer(failed(err.Error()), nil)
	}
	return frame.Answer(ExecuteSoapResponse{soapResult{Response: render(answer, words)}}, nil)
}

// arguments parses <name>value</name> pairs. An argument that occurs more than once is a list.
func arguments(list reflect.Value) esxcli.Args {
	args := esxcli.Args{}
	for i := range list.Len() {
		d := xml.NewDecoder(strings.NewReader(list.Index(i).FieldByName("Val").String()))
		var values []string
		for {
			var v struct {
				Text string `xml:",chardata"`
			}
			if d.Decode(&v) != nil {
				break
			}
			values = append(values, v.Text)
		}
		if values != nil {
			args[list.Index(i).FieldByName("Name").String()] = strings.Join(values, ",")
		}
	}
	return args
}

func failed(message string) ExecuteSoapResponse {
	var detail bytes.Buffer
	_ = xml.EscapeText(&detail, []byte(message))
	return ExecuteSoapResponse{soapResult{Fault: &soapFault{Msg: "EsxCLI.CLIFault.summary",
		Detail: "<fault><errMsg>" + detail.String() + "</errMsg></fault>"}}}
}

func describe(namespace string) ExecuteSoapResponse {
	info := esx.CommandInfo{CommandInfoItem: esx.CommandInfoItem{Name: namespace, DisplayName: namespace[strings.LastIndex(namespace, ".")+
		1:]}}
	for _, c := range esxcli.Commands() {
		last := len(c.Path) - 1
		if strings.Join(c.Path[:last], ".") != namespace {
			continue
		}
		method := esx.CommandInfoMethod{CommandInfoItem: esx.CommandInfoItem{Name: c.Path[last], DisplayName: c.Path[last]}}
		for _, p := range c.Params {
			param := esx.CommandInfoParam{CommandInfoItem: esx.CommandInfoItem{Name: p.Name, DisplayName: p.Long}, Flag: p.Flag,
				Aliases: []string{"--" + p.Long}}
			if p.Short != "" {
				param.Aliases = append([]string{"-" + p.Short}, param.Aliases...)
			}
			method.Param = append(method.Param, param)
		}
		method.Hints = esx.CommandInfoHints{{Key: "formatter", Value: "simple"}}
		info.Method = append(info.Method, method)
	}
	if info.Method == nil {
		return failed("The object or item referred to could not be found.")
	}
	out, err := xml.Marshal(info)
	if err != nil {
		return failed(err.Error())
	}
	return ExecuteSoapResponse{soapResult{Response: string(out)}}
}

// render formats rows as the API does: an array of data objects, one object, or a text.
func render(a esxcli.Answer, words []string) string {
	const xsi = ` xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="`
	var b strings.Builder
	kind := "VimEsxCLI" + strings.Join(words, "") + a.Type
	switch {
	case a.Message:
		b.WriteString("<obj" + xsi + `xsd:string">`)
		_ = xml.EscapeText(&b, []byte(a.Text))
		b.WriteString("</obj>")
	case a.Single || words[len(words)-1] == "get" && len(a.Rows) == 1:
		b.WriteString("<obj" + xsi + kind + `">`)
		object(&b, a.Rows[0])
		b.WriteString("</obj>")
	default:
		b.WriteString("<obj" + xsi + `ArrayOfDataObject">`)
		for _, row := range a.Rows {
			b.WriteString("<DataObject" + xsi + kind + `">`)
			object(&b, row)
			b.WriteString("</DataObject>")
		}
		b.WriteString("</obj>")
	}
	return b.String()
}

func object(b *strings.Builder, row []esxcli.Field) {
	for _, f := range row {
		if f.List != nil {
			for _, v := range f.List { // a list has one element for each value
				object(b, []esxcli.Field{{Name: f.Name, Value: v}})
			}
			continue
		}
		b.WriteString("<" + f.Key() + ">")
		if f.Sub != nil {
			b.WriteString("\n")
			object(b, f.Sub)
		} else {
			_ = xml.EscapeText(b, []byte(f.Value))
		}
		b.WriteString("</" + f.Key() + ">")
	}
}
