#!/usr/bin/python3
"""Run pyVmomi against a lab, on which foreign.sh has not yet changed anything, and compare with what the vSphere Web Services
API Reference says. Prints a line for each call: result, call, expectation, source, divided by tabs."""
import os
import ssl
import sys
from urllib.parse import urlparse

from pyVim.connect import Disconnect, SmartConnect
from pyVim.task import WaitForTask
from pyVmomi import vim, vmodl

url = urlparse(os.environ["GOVC_URL"])
tls = ssl.create_default_context(cafile=os.environ["GOVC_TLS_CA_CERTS"])
si = SmartConnect(host=url.hostname, port=url.port, user=os.environ["GOVC_USERNAME"], pwd=os.environ["GOVC_PASSWORD"], sslContext=tls)
content = si.RetrieveContent()
missed = calls = 0


def call(text, want, source, do):
    """Evaluate a call; want is a value, a type of fault, or a function that judges the value."""
    global missed, calls
    calls += 1
    try:
        got = do()
    except Exception as e:  # a fault of the API, or an answer that pyVmomi cannot read
        got = e
    if isinstance(want, type) and issubclass(want, Exception):
        met = isinstance(got, want)
    elif isinstance(got, Exception):
        met = False
    else:
        met = want(got) if callable(want) else got == want
    if not met:
        missed += 1
        print("pyVmomi: %s: %r" % (text, got), file=sys.stderr)
    print("\t".join(["met" if met else "not as expected", "pyVmomi " + text, getattr(want, "__name__", repr(want)), source]))
    return got


def found(kind):
    view = content.viewManager.CreateContainerView(content.rootFolder, [kind], True)
    try:
        return {o.name: o for o in view.view}
    finally:
        view.Destroy()


def whole(o, *names):
    """Every property of an object can be read: a required one that is empty makes pyVmomi raise."""
    for name in names:
        getattr(o, name)
    return True


API = "API, "
call("about.apiType", "VirtualCenter", API + "AboutInfo", lambda: content.about.apiType)
call("CurrentTime", lambda t: t.year > 2000, API + "ServiceInstance", si.CurrentTime)
hosts = call("ContainerView of HostSystem", lambda v: sorted(v) == ["esx-01", "esx-02"], API + "ViewManager", lambda: found(vim.HostSystem))
vms = call("ContainerView of VirtualMachine", lambda v: len(v) == 4, API + "ViewManager", lambda: found(vim.VirtualMachine))
host, vm = hosts["esx-01"], vms["vm-01"]
for part in "config summary runtime hardware capability configManager network datastore vm overallStatus".split():
    call("HostSystem." + part, True, API + "HostSystem", lambda: whole(host, part))
for part in "config summary runtime guest capability layoutEx resourceConfig environmentBrowser network datastore recentTask".split():
    call("VirtualMachine." + part, True, API + "VirtualMachine", lambda: whole(vm, part))
cluster = list(found(vim.ClusterComputeResource).values())[0]
for part in "configurationEx summary host network resourcePool environmentBrowser".split():
    call("ClusterComputeResource." + part, True, API + "ClusterComputeResource", lambda: whole(cluster, part))
pool = cluster.resourcePool
for part in "config summary runtime owner".split():
    call("ResourcePool." + part, True, API + "ResourcePool", lambda: whole(pool, part))
call("OptionManager.QueryOptions", lambda o: o[0].key == "Net.PVRDMAVmknic", API + "OptionManager",
     lambda: host.configManager.advancedOption.QueryOptions("Net.PVRDMAVmknic"))
call("QueryOptions of no option", vim.fault.InvalidName, API + "OptionManager",
     lambda: host.configManager.advancedOption.QueryOptions("No.Such"))
call("firewall rulesets", lambda i: any(r.key == "pvrdma" for r in i.ruleset), API + "HostFirewallSystem",
     lambda: host.configManager.firewallSystem.firewallInfo)
call("services", lambda i: any(s.key == "TSM-SSH" for s in i.service), API + "HostServiceSystem", lambda: host.configManager.serviceSystem.serviceInfo)
call("PowerOn of a VM that is on", vim.fault.InvalidPowerState, API + "PowerOnVM_Task", lambda: WaitForTask(vm.PowerOn()))
call("PowerOff", lambda s: s == "success", API + "PowerOffVM_Task", lambda: WaitForTask(vms["vm-02"].PowerOff()))
call("PowerOn", lambda s: s == "success", API + "PowerOnVM_Task", lambda: WaitForTask(vms["vm-02"].PowerOn()))
call("CreateSnapshot", lambda s: s == "success", API + "CreateSnapshot_Task",
     lambda: WaitForTask(vm.CreateSnapshot("p1", "", False, False)))
call("snapshot.rootSnapshotList", "p1", API + "VirtualMachineSnapshotInfo", lambda: vm.snapshot.rootSnapshotList[0].name)
call("RemoveAllSnapshots", lambda s: s == "success", API + "RemoveAllSnapshots_Task", lambda: WaitForTask(vm.RemoveAllSnapshots()))
call("SearchIndex.FindByUuid", vm, API + "SearchIndex", lambda: content.searchIndex.FindByUuid(None, vm.config.uuid, True))
call("SearchIndex.FindByInventoryPath", vm, API + "SearchIndex", lambda: content.searchIndex.FindByInventoryPath("DC/vm/vm-01"))
spec = vim.event.EventFilterSpec(eventTypeId=["vim.event.VmPoweredOnEvent"])
call("QueryEvents", lambda e: e[-1].vm.vm == vms["vm-02"], API + "EventManager", lambda: content.eventManager.QueryEvents(spec))
events = content.eventManager.CreateCollectorForEvents(vim.event.EventFilterSpec())
call("ReadNextEvents", lambda e: [x.key for x in e] == sorted(x.key for x in e) and e, API + "EventHistoryCollector", lambda: events.ReadNextEvents(5))
call("ReadNextEvents of none", vmodl.fault.InvalidArgument, API + "EventHistoryCollector", lambda: events.ReadNextEvents(0))
tasks = content.taskManager.CreateCollectorForTasks(vim.TaskFilterSpec(state=["success"]))
call("ReadNextTasks", lambda t: "VirtualMachine.powerOff" in [x.descriptionId for x in t], API + "TaskHistoryCollector", lambda: tasks.ReadNextTasks(100))
call("ReadNextTasks with an error", lambda t: "VirtualMachine.powerOn" in [x.descriptionId for x in t], API + "TaskFilterSpec.state",
     lambda: content.taskManager.CreateCollectorForTasks(vim.TaskFilterSpec(state=["error"])).ReadNextTasks(100))
call("authorizationManager.roleList", lambda r: any(x.name == "Admin" for x in r), API + "AuthorizationManager",
     lambda: content.authorizationManager.roleList)
call("perfManager.perfCounter", lambda p: len(p) > 10, API + "PerformanceManager", lambda: content.perfManager.perfCounter)
call("licenseManager.licenses", lambda x: len(x) > 0, API + "LicenseManager", lambda: content.licenseManager.licenses)
call("CreateSecondaryVM", vmodl.fault.NotSupported, API + "NotSupported: a method that the server has not", lambda: vm.CreateSecondary())
Disconnect(si)
print("pyVmomi: %d calls, %d as expected" % (calls, calls - missed), file=sys.stderr)
sys.exit(missed > 0)
