// Package frame is the base of the lab's vCenter. It routes every SOAP call of govmomi's simulator through the lab's own rules
// (sessions, privileges, missing objects), runs tasks that progress, fail and stop like real ones, formats faults like vSphere,
// and changes properties so that WaitForUpdatesEx reports them.
package frame

import (
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/fault"
)

// A Frame contains the data shared by the methods of all kinds.
type Frame struct {
	World *world.World
	Reg   *simulator.Registry
	Auth  *Auth
	Watch Watcher // is notified of tasks and sessions; may be nil

	// Still calls f. While f runs, no object of the inventory is added, changed or removed. Package model sets it.
	Still func(f func())

	// Commit is locked while a change is validated and applied, so that two calls cannot both take the same free pNIC.
	Commit sync.Mutex

	gate   *gate
	kinds  map[string]*kind // by type of managed object
	owners sync.Map         // sub-object (firewall system, task) -> entity
	users  sync.Map         // session -> user name, for sessions that have made a call
	tasks  tasks
}

// A Watcher is notified of events in a frame. No lock is held during the notification.
type Watcher interface {
	TaskMoved(task types.ManagedObjectReference, ended bool) // the task was created or has ended
	TaskDone(task types.ManagedObjectReference, result any)  // the task is done, but its end is not yet visible to clients
	SessionBegan(types.UserSession)
	SessionEnded(types.UserSession)
}

// New returns a frame around a registry.
func New(w *world.World, reg *simulator.Registry) *Frame {
	f := &Frame{World: w, Reg: reg, kinds: map[string]*kind{}}
	f.Auth = newAuth(f)
	f.tasks.running = map[types.ManagedObjectReference]*Task{}
	f.tasks.stop = make(chan struct{})
	reg.Handler = f.route
	f.Handle(&refuser{}, refuserType)
	f.Handle(&guard{}, guardType)
	f.gate = &gate{dispatcher{Self: f.kinds[refuserType].Self, kind: f.kinds[refuserType]}}
	f.Handle(taskMethods{f}, "Task")
	f.Handle(authMethods{f.Auth}, "AuthorizationManager")
	return f
}

// Close cancels the running tasks and waits for them to end.
func (f *Frame) Close() { f.tasks.close() }

// A kind contains the methods of one type of managed object. It does not use the locks of the simulator.
type kind struct {
	Self    types.ManagedObjectReference
	methods []any
	whole   bool // all other methods are refused
}

// Handle registers methods as the only methods of these types of managed object. Their signature is that of the simulator:
// func(*simulator.Context, *types.X) soap.HasFault, with X_Task named XTask.
func (f *Frame) Handle(methods any, typeNames ...string) {
	f.Extend(methods, typeNames...)
	for _, name := range typeNames {
		f.kinds[name].whole = true
	}
}

// Extend is like Handle, but the types keep the methods of the simulator and those registered earlier.
func (f *Frame) Extend(methods any, typeNames ...string) {
	for _, name := range typeNames {
		k := f.kinds[name]
		if k == nil {
			k = &kind{Self: types.ManagedObjectReference{Type: "Lab", Value: name}}
			f.kinds[name] = k
			f.Reg.Put(&dispatcher{Self: k.Self, kind: k})
		}
		k.methods = append(k.methods, methods)
	}
}

func (k *kind) has(method string) bool {
	return k.find(method) != nil
}

// find returns the value that has a method, or nil if there is none.
func (k *kind) find(method string) any {
	for _, m := range k.methods {
		if reflect.ValueOf(m).MethodByName(methodName(method)).IsValid() {
			return m
		}
	}
	return nil
}

// methodName returns the Go name of a method. Some SOAP names begin with a lower-case letter.
func methodName(soap string) string {
	soap = strings.ToUpper(soap[:1]) + soap[1:]
	if base, ok := strings.CutSuffix(soap, "_Task"); ok {
		return base + "Task"
	}
	return soap
}

// Add adds an object that is not part of the inventory, such as a task, to the registry. The simulator searches all views of the
// inventory for each new object, so the inventory must not change during the call.
func (f *Frame) Add(obj mo.Reference) {
	if f.Still == nil {
		f.Reg.Put(obj)
		return
	}
	f.Still(func() { f.Reg.Put(obj) })
}

// Update changes the properties of an object.
func (f *Frame) Update(ref types.ManagedObjectReference, changes ...types.PropertyChange) {
	obj := f.Reg.Get(ref)
	if obj == nil || len(changes) == 0 {
		return
	}
	ctx := &simulator.Context{Map: f.Reg}
	defer f.Reg.AcquireLock(ctx, obj)()
	ctx.Update(obj, changes)
}

// Set returns a change of one property.
func Set(name string, value any) types.PropertyChange {
	return types.PropertyChange{Name: name, Val: value}
}

// Read calls read with the object locked. It returns false if the object does not exist.
func (f *Frame) Read(ref types.ManagedObjectReference, read func(obj mo.Reference)) bool {
	obj := f.Reg.Get(ref)
	if obj == nil {
		return false
	}
	defer f.Reg.AcquireLock(&simulator.Context{Map: f.Reg}, obj)()
	read(obj)
	return true
}

// Own records the entity that a sub-object belongs to. Faults, privileges and tasks refer to that entity.
func (f *Frame) Own(sub, entity types.ManagedObjectReference) { f.owners.Store(sub, entity) }

// Owner returns the entity of a sub-object, or the object itself.
func (f *Frame) Owner(ref types.ManagedObjectReference) types.ManagedObjectReference {
	if e, ok := f.owners.Load(ref); ok {
		return e.(types.ManagedObjectReference)
	}
	return ref
}

// Name returns the name of an entity, or its reference if it has none.
func (f *Frame) Name(ref types.ManagedObjectReference) string {
	name := ""
	f.Read(f.Owner(ref), func(obj mo.Reference) {
		v := reflect.ValueOf(obj).Elem().FieldByName("Name")
		if v.IsValid() && v.Kind() == reflect.String {
			name = v.String()
		}
	})
	if name == "" {
		return ref.Value
	}
	return name
}

// Target returns the host or VM of the world that a call affects.
func (f *Frame) Target(ref types.ManagedObjectReference) fault.Target {
	switch owner := f.Owner(ref); owner.Type {
	case "HostSystem":
		return fault.Target{Host: f.Name(owner)}
	case "VirtualMachine":
		t := fault.Target{VM: f.Name(owner)}
		f.World.View(func(s *world.State) {
			if v := s.VM(t.VM); v != nil {
				t.VM, t.Host = v.Name, v.Host
			}
		})
		return t
	}
	return fault.Target{}
}

func refText(ref types.ManagedObjectReference) string {
	return fmt.Sprintf("vim.%s:%s", ref.Type, ref.Value)
}

// Remove removes an object from the inventory.
func (f *Frame) Remove(ref types.ManagedObjectReference) {
	f.Reg.Remove(&simulator.Context{Map: f.Reg}, ref)
}
