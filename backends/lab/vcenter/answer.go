package vcenter

import (
	"fmt"
	"io"
	"net/http"
	"reflect"

	"github.com/vmware/govmomi/vim25/types"
	"github.com/vmware/govmomi/vim25/xml"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
)

const envelope = xml.Header +
	`<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" xmlns:xsd="http://www.w3.org/2001/XMLSchema"` +
	` xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><soapenv:Body>`

const envelopeEnd = `</soapenv:Body></soapenv:Envelope>`

// writeFault writes a SOAP fault as the answer. A failed write cannot be reported.
func writeFault(w http.ResponseWriter, e *frame.Error) {
	w.Header().Set("Content-Type", `text/xml; charset="utf-8"`)
	w.WriteHeader(http.StatusInternalServerError)
	kind := reflect.TypeOf(e.Fault).Elem().Name()
	_, _ = io.WriteString(w, envelope+`<soapenv:Fault><faultcode>ServerFaultCode</faultcode><faultstring>`)
	_ = xml.EscapeText(w, []byte(e.Text))
	_, _ = io.WriteString(w, `</faultstring><detail>`)
	_ = xml.NewEncoder(w).EncodeElement(e.Fault, xml.StartElement{Name: xml.Name{Local: kind + "Fault"}, Attr: []xml.Attr{
		{Name: xml.Name{Local: "xmlns"}, Value: "urn:vim25"}, {Name: xml.Name{Local: "xsi:type"}, Value: kind}}})
	_, _ = io.WriteString(w, `</detail></soapenv:Fault>`+envelopeEnd)
}

func writeTask(w http.ResponseWriter, method string, task types.ManagedObjectReference) {
	w.Header().Set("Content-Type", `text/xml; charset="utf-8"`)
	_, _ = fmt.Fprintf(w, `%s<%sResponse xmlns="urn:vim25"><returnval type="Task">%s</returnval></%sResponse>%s`,
		envelope, method, task.Value, method, envelopeEnd)
}
