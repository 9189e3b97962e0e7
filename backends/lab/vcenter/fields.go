package vcenter

import (
	"slices"
	"strings"
	"sync"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/simulator/vpx"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
)

// fields are the custom attributes of vCenter. Names are unique (DuplicateName), keys are never reused, and removing an
// attribute removes its values. Source: vSphere Web Services API, Managed Object - CustomFieldsManager.
type fields struct {
	f *frame.Frame

	mu   sync.Mutex
	defs []types.CustomFieldDef
	last int32
	on   map[int32][]types.ManagedObjectReference // entities with a value, by key
}

func newFields(f *frame.Frame) *fields {
	f.Own(*vpx.ServiceContent.CustomFieldsManager, vpx.ServiceContent.RootFolder)
	return &fields{f: f, last: 100, on: map[int32][]types.ManagedObjectReference{}}
}

func (m *fields) find(key int32) int {
	return slices.IndexFunc(m.defs, func(d types.CustomFieldDef) bool { return d.Key == key })
}

func (m *fields) taken(name, kind string) bool {
	return slices.ContainsFunc(m.defs, func(d types.CustomFieldDef) bool {
		return d.Name == name && (d.ManagedObjectType == kind || d.ManagedObjectType == "" || kind == "")
	})
}

func (m *fields) publish(manager types.ManagedObjectReference) {
	defs := slices.Clone(m.defs)
	slices.SortFunc(defs, func(a, b types.CustomFieldDef) int { return strings.Compare(a.Name, b.Name) })
	m.f.Update(manager, frame.Set("field", defs))
}

// AddCustomFieldDef creates an attribute.
func (m *fields) AddCustomFieldDef(_ *simulator.Context, req *types.AddCustomFieldDef) soap.HasFault {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.taken(req.Name, req.MoType) {
		return frame.Answer(nil, frame.Refuse(&types.DuplicateName{Name: req.Name, Object: req.This}))
	}
	m.last++
	def := types.CustomFieldDef{Key: m.last, Name: req.Name, Type: "string", ManagedObjectType: req.MoType}
	m.defs = append(m.defs, def)
	m.publish(req.This)
	return frame.Answer(types.AddCustomFieldDefResponse{Returnval: def}, nil)
}

// RemoveCustomFieldDef removes an attribute and its values.
func (m *fields) RemoveCustomFieldDef(_ *simulator.Context, req *types.RemoveCustomFieldDef) soap.HasFault {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := m.find(req.Key)
	if i < 0 {
		return frame.Answer(nil, frame.BadArgument("key"))
	}
	m.defs = slices.Delete(m.defs, i, i+1)
	for _, entity := range m.on[req.Key] {
		m.set(entity, req.Key, "")
	}
	delete(m.on, req.Key)
	m.publish(req.This)
	return frame.Answer(types.RemoveCustomFieldDefResponse{}, nil)
}

// SetField sets the value of an attribute for an entity; it requires Global.SetCustomField on the entity.
func (m *fields) SetField(ctx *simulator.Context, req *types.SetField) soap.HasFault {
	if err := m.f.Need(ctx, "Global.SetCustomField", req.Entity); err != nil {
		return frame.Answer(nil, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	i := m.find(req.Key)
	if i < 0 || m.defs[i].ManagedObjectType != "" && m.defs[i].ManagedObjectType != req.Entity.Type {
		return frame.Answer(nil, frame.Refuse(&types.InvalidArgument{InvalidProperty: "key"}))
	}
	if !m.set(req.Entity, req.Key, req.Value) {
		return frame.Answer(nil, frame.Gone(req.Entity))
	}
	if !slices.Contains(m.on[req.Key], req.Entity) {
		m.on[req.Key] = append(m.on[req.Key], req.Entity)
	}
	return frame.Answer(types.SetFieldResponse{}, nil)
}

// set sets the value of an entity; an empty value removes it. It returns false if the entity does not exist.
func (m *fields) set(entity types.ManagedObjectReference, key int32, value string) bool {
	var values []types.BaseCustomFieldValue
	there := m.f.Read(entity, func(obj mo.Reference) {
		if e, is := obj.(mo.Entity); is {
			values = slices.DeleteFunc(slices.Clone(e.Entity().CustomValue), func(v types.BaseCustomFieldValue) bool {
				return v.GetCustomFieldValue().Key == key
			})
		}
	})
	if value != "" {
		values = append(values, &types.CustomFieldStringValue{CustomFieldValue: types.CustomFieldValue{Key: key}, Value: value})
	}
	m.f.Update(entity, frame.Set("customValue", values))
	return there
}
