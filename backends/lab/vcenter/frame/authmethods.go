package frame

import (
	"slices"
	"strings"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// authMethods are the methods of AuthorizationManager.
type authMethods struct{ a *Auth }

// HasPrivilegeOnEntities checks privileges of the user of a session. Unknown entities are refused.
func (m authMethods) HasPrivilegeOnEntities(ctx *simulator.Context, req *types.HasPrivilegeOnEntities) soap.HasFault {
	list, err := m.granted(ctx.Session.UserName, req.Entity, req.PrivId)
	return Answer(types.HasPrivilegeOnEntitiesResponse{Returnval: list}, err)
}

// HasPrivilegeOnEntity is HasPrivilegeOnEntities for one entity.
func (m authMethods) HasPrivilegeOnEntity(ctx *simulator.Context, req *types.HasPrivilegeOnEntity) soap.HasFault {
	list, err := m.granted(ctx.Session.UserName, []types.ManagedObjectReference{req.Entity}, req.PrivId)
	if err != nil {
		return Answer(nil, err)
	}
	var granted []bool
	for _, p := range list[0].PrivAvailability {
		granted = append(granted, p.IsGranted)
	}
	return Answer(HasPrivilegeOnEntityResponse{Returnval: granted}, nil)
}

// HasPrivilegeOnEntityResponse replaces govmomi's type of the same name, whose struct tag would omit every false.
type HasPrivilegeOnEntityResponse struct {
	Returnval []bool `xml:"returnval"`
}

func (m authMethods) granted(user string, entities []types.ManagedObjectReference, ids []string) ([]types.EntityPrivilege, error) {
	all := m.a.all()
	var out []types.EntityPrivilege
	for _, e := range entities {
		if m.a.f.Reg.Get(e) == nil {
			return nil, Gone(e)
		}
		p := types.EntityPrivilege{Entity: e}
		for _, id := range ids {
			if !slices.Contains(all, id) {
				return nil, BadArgument("privId")
			}
			p.PrivAvailability = append(p.PrivAvailability, types.PrivilegeAvailability{PrivId: id, IsGranted: m.a.Holds(user, id, e)})
		}
		out = append(out, p)
	}
	return out, nil
}

// all returns the ids of all privileges.
func (a *Auth) all() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range a.roles {
		if r.Name == "Admin" {
			return r.Privilege
		}
	}
	return nil
}

// exist reports whether all of these privileges exist.
func (a *Auth) exist(ids []string) bool {
	all := a.all()
	return !slices.ContainsFunc(ids, func(id string) bool { return !slices.Contains(all, id) })
}

// AddAuthorizationRole adds a role.
func (m authMethods) AddAuthorizationRole(_ *simulator.Context, req *types.AddAuthorizationRole) soap.HasFault {
	if !m.a.exist(req.PrivIds) {
		return Answer(nil, BadArgument("privIds"))
	}
	m.a.mu.Lock()
	defer m.a.mu.Unlock()
	for _, r := range m.a.roles {
		if strings.EqualFold(r.Name, req.Name) {
			return Answer(nil, Refuse(&types.AlreadyExists{Name: req.Name}))
		}
	}
	role := types.AuthorizationRole{RoleId: m.a.nextRole, Name: req.Name, Privilege: slices.Clone(req.PrivIds),
		Info: &types.Description{Label: req.Name, Summary: req.Name}}
	m.a.nextRole++
	m.a.roles = append(m.a.roles, role)
	m.a.publish()
	return Answer(types.AddAuthorizationRoleResponse{Returnval: role.RoleId}, nil)
}

// UpdateAuthorizationRole renames a role and replaces its privileges. System roles are refused.
func (m authMethods) UpdateAuthorizationRole(_ *simulator.Context, req *types.UpdateAuthorizationRole) soap.HasFault {
	if !m.a.exist(req.PrivIds) {
		return Answer(nil, BadArgument("privIds"))
	}
	m.a.mu.Lock()
	defer m.a.mu.Unlock()
	i := slices.IndexFunc(m.a.roles, func(r types.AuthorizationRole) bool { return r.RoleId == req.RoleId })
	switch {
	case i < 0:
		return Answer(nil, Refuse(&types.NotFound{}))
	case m.a.roles[i].System:
		return Answer(nil, BadArgument("roleId"))
	case slices.ContainsFunc(m.a.roles, func(r types.AuthorizationRole) bool {
		return r.RoleId != req.RoleId && strings.EqualFold(r.Name, req.NewName)
	}):
		return Answer(nil, Refuse(&types.AlreadyExists{Name: req.NewName}))
	}
	m.a.roles = slices.Clone(m.a.roles)
	m.a.roles[i].Name, m.a.roles[i].Privilege = req.NewName, slices.Clone(req.PrivIds)
	m.a.publish()
	return Answer(types.UpdateAuthorizationRoleResponse{}, nil)
}

// publish writes the roles to the property roleList. The caller holds the mutex.
func (a *Auth) publish() {
	if a.f.Reg.Get(authRef) != nil {
		a.f.Update(authRef, Set("roleList", slices.Clone(a.roles)))
	}
}

var authRef = types.ManagedObjectReference{Type: "AuthorizationManager", Value: "AuthorizationManager"}

// RemoveAuthorizationRole removes a role. System roles are refused.
func (m authMethods) RemoveAuthorizationRole(_ *simulator.Context, req *types.RemoveAuthorizationRole) soap.HasFault {
	m.a.mu.Lock()
	defer m.a.mu.Unlock()
	i := slices.IndexFunc(m.a.roles, func(r types.AuthorizationRole) bool { return r.RoleId == req.RoleId })
	if i < 0 {
		return Answer(nil, Refuse(&types.NotFound{}))
	}
	if m.a.roles[i].System {
		return Answer(nil, BadArgument("roleId"))
	}
	m.a.roles = slices.Delete(slices.Clone(m.a.roles), i, i+1)
	m.a.publish()
	return Answer(types.RemoveAuthorizationRoleResponse{}, nil)
}

// SetEntityPermissions assigns roles to users on an entity. The permissions are enforced immediately.
func (m authMethods) SetEntityPermissions(_ *simulator.Context, req *types.SetEntityPermissions) soap.HasFault {
	if m.a.f.Reg.Get(req.Entity) == nil {
		return Answer(nil, Gone(req.Entity))
	}
	m.a.mu.Lock()
	defer m.a.mu.Unlock()
	for _, p := range req.Permission {
		if _, ok := m.a.accounts[strings.ToLower(principal(p.Principal))]; !ok && !p.Group {
			return Answer(nil, Refuse(&types.UserNotFound{Principal: p.Principal}))
		}
		if !slices.ContainsFunc(m.a.roles, func(r types.AuthorizationRole) bool { return r.RoleId == p.RoleId }) {
			return Answer(nil, Refuse(&types.NotFound{}))
		}
	}
	list := m.a.permissions[req.Entity]
	for _, p := range req.Permission {
		list = slices.DeleteFunc(slices.Clone(list), func(old types.Permission) bool {
			return strings.EqualFold(principal(old.Principal), principal(p.Principal))
		})
		p.Entity = &req.Entity
		list = append(list, p)
	}
	m.a.permissions[req.Entity] = list
	return Answer(types.SetEntityPermissionsResponse{}, nil)
}

// RemoveEntityPermission removes the permission of a principal on an entity.
func (m authMethods) RemoveEntityPermission(_ *simulator.Context, req *types.RemoveEntityPermission) soap.HasFault {
	if m.a.f.Reg.Get(req.Entity) == nil {
		return Answer(nil, Gone(req.Entity))
	}
	m.a.mu.Lock()
	defer m.a.mu.Unlock()
	before := m.a.permissions[req.Entity]
	after := slices.DeleteFunc(slices.Clone(before), func(p types.Permission) bool {
		return p.Group == req.IsGroup && strings.EqualFold(principal(p.Principal), principal(req.User))
	})
	if len(after) == len(before) {
		return Answer(nil, Refuse(&types.NotFound{}))
	}
	m.a.permissions[req.Entity] = after
	return Answer(types.RemoveEntityPermissionResponse{}, nil)
}

// RetrieveEntityPermissions lists the permissions of an entity, and on request also the inherited ones.
func (m authMethods) RetrieveEntityPermissions(_ *simulator.Context, req *types.RetrieveEntityPermissions) soap.HasFault {
	if _, ok := m.a.f.Reg.Get(req.Entity).(mo.Entity); !ok {
		return Answer(nil, Gone(req.Entity))
	}
	var list []types.Permission
	for at, ok := req.Entity, true; ok; at, ok = m.a.parent(at) {
		m.a.mu.Lock()
		list = append(list, m.a.permissions[at]...)
		m.a.mu.Unlock()
		if !req.Inherited {
			break
		}
	}
	return Answer(types.RetrieveEntityPermissionsResponse{Returnval: list}, nil)
}

// RetrieveAllPermissions lists all permissions.
func (m authMethods) RetrieveAllPermissions(_ *simulator.Context, _ *types.RetrieveAllPermissions) soap.HasFault {
	return Answer(types.RetrieveAllPermissionsResponse{Returnval: m.permissions(func(types.Permission) bool { return true })}, nil)
}

func (m authMethods) permissions(want func(types.Permission) bool) []types.Permission {
	m.a.mu.Lock()
	defer m.a.mu.Unlock()
	var list []types.Permission
	for _, set := range m.a.permissions {
		for _, p := range set {
			if want(p) {
				list = append(list, p)
			}
		}
	}
	return list
}
