"""Give Debian's pyVmomi (6.7.1) the JSON encoder that modules of Ansible's community.vmware expect of newer releases: a data object
becomes a dictionary with its type. foreign.sh puts this file where Python loads it at its start, as sitecustomize."""
import datetime
import json

try:
    from pyVmomi import VmomiSupport
except ImportError:
    VmomiSupport = None


class Encoder(json.JSONEncoder):
    def __init__(self, *args, strip_dynamic=False, **options):
        super().__init__(*args, **options)
        self.left_out = ("dynamicType", "dynamicProperty") if strip_dynamic else ()

    def fields(self, o):
        names = [p.name for p in o._GetPropertyList() if p.name not in self.left_out]
        return dict({n: getattr(o, n) for n in names}, _vimtype=type(o).__name__)

    def default(self, o):
        if isinstance(o, VmomiSupport.DataObject):
            return self.fields(o)
        if isinstance(o, VmomiSupport.ManagedObject):
            return "%s:%s" % (type(o).__name__, o._moId)
        if isinstance(o, datetime.datetime):
            return o.isoformat()
        return o.__name__ if isinstance(o, type) else str(o)

    def iterencode(self, o, _one_shot=False):
        if VmomiSupport is not None and isinstance(o, VmomiSupport.ManagedObject):
            o = self.fields(o)
        return super().iterencode(o, _one_shot)

    encode = lambda self, o: "".join(self.iterencode(o))


if VmomiSupport is not None and not hasattr(VmomiSupport, "VmomiJSONEncoder"):
    VmomiSupport.VmomiJSONEncoder = Encoder
