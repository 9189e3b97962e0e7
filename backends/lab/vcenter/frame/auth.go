package frame

import (
	"slices"
	"strings"
	"sync"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/simulator/esx"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// An Account is a user that can log in. Privileges apply to the complete inventory; nil means all privileges. Every account has
// the System.* privileges.
type Account struct {
	Name, Password string
	Privileges     []string
}

// Auth checks the privileges of users. Roles and permissions set through the API are also enforced.
type Auth struct {
	f *Frame

	mu          sync.Mutex
	accounts    map[string]Account
	roles       []types.AuthorizationRole
	permissions map[types.ManagedObjectReference][]types.Permission
	nextRole    int32
}

func newAuth(f *Frame) *Auth {
	a := &Auth{
		f:           f,
		accounts:    map[string]Account{},
		roles:       slices.Clone(esx.RoleList),
		permissions: map[types.ManagedObjectReference][]types.Permission{},
		nextRole:    1001,
	}
	return a
}

// Allow adds or replaces an account.
func (a *Auth) Allow(accounts ...Account) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, acc := range accounts {
		a.accounts[strings.ToLower(acc.Name)] = acc
	}
}

// Valid reports whether the password of an account is correct.
func (a *Auth) Valid(name, password string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	acc, ok := a.accounts[strings.ToLower(name)]
	return ok && acc.Password == password && password != ""
}

// Holds reports whether a user has a privilege on an entity.
func (a *Auth) Holds(user, privilege string, entity types.ManagedObjectReference) bool {
	if strings.HasPrefix(privilege, "System.") {
		return true
	}
	a.mu.Lock()
	acc, known := a.accounts[strings.ToLower(user)]
	set := len(a.permissions) > 0
	a.mu.Unlock()
	if set {
		// A permission on the entity, or on the nearest parent that propagates it, replaces the privileges of the account.
		if role, found := a.roleOn(user, entity); found {
			return a.roleHas(role, privilege)
		}
	}
	return known && (acc.Privileges == nil || slices.Contains(acc.Privileges, privilege))
}

func (a *Auth) roleOn(user string, entity types.ManagedObjectReference) (int32, bool) {
	at, own := entity, true
	for {
		a.mu.Lock()
		for _, p := range a.permissions[at] {
			if strings.EqualFold(principal(p.Principal), user) && (own || p.Propagate) {
				a.mu.Unlock()
				return p.RoleId, true
			}
		}
		a.mu.Unlock()
		parent, ok := a.parent(at)
		if !ok {
			return 0, false
		}
		at, own = parent, false
	}
}

func (a *Auth) parent(ref types.ManagedObjectReference) (types.ManagedObjectReference, bool) {
	var parent *types.ManagedObjectReference
	a.f.Read(ref, func(obj mo.Reference) {
		if e, ok := obj.(mo.Entity); ok {
			parent = e.Entity().Parent
		}
	})
	if parent == nil {
		return types.ManagedObjectReference{}, false
	}
	return *parent, true
}

func (a *Auth) roleHas(id int32, privilege string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range a.roles {
		if r.RoleId == id {
			return slices.Contains(r.Privilege, privilege)
		}
	}
	return false
}

// principal converts VSPHERE.LOCAL\name to name@vsphere.local.
func principal(p string) string {
	if domain, name, ok := strings.Cut(p, `\`); ok {
		return name + "@" + strings.ToLower(domain)
	}
	return p
}

// Need returns NoPermission, with the object and the privilege, if the caller does not have the privilege on the entity.
func (f *Frame) Need(ctx *simulator.Context, privilege string, entity types.ManagedObjectReference) error {
	entity = f.Owner(entity)
	if ctx.Session == nil || !f.Auth.Holds(ctx.Session.UserName, privilege, entity) {
		return Refuse(&types.NoPermission{Object: &entity, PrivilegeId: privilege})
	}
	return nil
}

// admit returns an error if a call must be refused: no session, a wrong password, or a missing privilege.
func (f *Frame) admit(ctx *simulator.Context, m *simulator.Method) error {
	if ctx.Session == nil {
		return f.admitStranger(m)
	}
	switch m.Name {
	case "LoginByToken", "LoginExtensionByCertificate", "ImpersonateUser":
		return Refuse(&types.NotSupported{})
	}
	if id := Privilege(m.Name, m.This); id != "" {
		return f.Need(ctx, id, m.This)
	}
	return nil
}

func (f *Frame) admitStranger(m *simulator.Method) error {
	denied := Refuse(&types.NotAuthenticated{NoPermission: types.NoPermission{Object: &m.This, PrivilegeId: "System.View"}})
	switch m.Name {
	case "RetrieveServiceContent", "CloneSession":
		return nil
	case "Login":
		req, ok := m.Body.(*types.Login)
		if !ok || !f.Auth.Valid(req.UserName, req.Password) {
			return Refuse(&types.InvalidLogin{})
		}
		return nil
	case "RetrieveProperties", "RetrievePropertiesEx":
		for _, spec := range specs(m.Body) {
			for _, o := range spec.ObjectSet {
				if o.Obj.Type != "ServiceInstance" && o.Obj.Type != "SessionManager" {
					return denied
				}
			}
		}
		return nil
	}
	return denied
}

func specs(body types.AnyType) []types.PropertyFilterSpec {
	switch b := body.(type) {
	case *types.RetrieveProperties:
		return b.SpecSet
	case *types.RetrievePropertiesEx:
		return b.SpecSet
	}
	return nil
}
