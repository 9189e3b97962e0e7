package answers

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
)

// Validate reports everything that is wrong with the answers themselves; the plan checks what depends on an inventory. The error
// is of type Problems.
func (a *Answers) Validate() error {
	if ps := problemsOf(a); len(ps) > 0 {
		return ps
	}
	return nil
}

// checker collects problems.
type checker struct {
	keys     keyTable
	problems Problems
}

func (c *checker) bad(path, hint, format string, args ...any) {
	hint = cmp.Or(hint, c.keys[pattern(path)].Hint)
	c.problems = append(c.problems, Problem{Path: path, What: fmt.Sprintf(format, args...), Hint: hint})
}

func problemsOf(a *Answers) Problems {
	c := &checker{keys: newKeyTable()}
	c.limits(reflect.ValueOf(a).Elem(), "")
	c.vcenter(a.VCenter)
	c.hosts(a)
	if len(a.Rails) == 0 {
		c.nic(a.NIC, "nic")
		c.network(a.Switch, "switch")
	}
	c.rails(a)
	c.fabric(a)
	c.vms(a)
	c.gpus(a)
	c.container(a.Container)
	c.software(a.GPUDirect)
	c.source(a.Measure)
	c.ofed(a)
	return c.problems
}

// limits enforces the table of keys: required, one of, between.
func (c *checker) limits(v reflect.Value, path string) {
	k := c.keys[pattern(path)]
	switch {
	case v.Kind() == reflect.Struct && !isText(v):
		for name, f := range fields(v) {
			c.limits(f, join(path, name))
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			c.limits(v.Index(i), fmt.Sprintf("%s[%d]", path, i))
		}
	case v.Kind() == reflect.String:
		c.word(v.String(), path, k)
	case v.Kind() == reflect.Map:
		for _, key := range v.MapKeys() {
			c.printable(key.String(), path)
			if e := v.MapIndex(key); e.Kind() == reflect.String {
				c.printable(e.String(), path+"{"+key.String()+"}")
			} else if e.Kind() == reflect.Struct {
				c.limits(e, path+"{"+key.String()+"}")
			}
		}
	case v.Kind() == reflect.Int && k.Max > 0:
		if n := int(v.Int()); n < k.Min || n > k.Max {
			hint := cmp.Or(k.Hint, fmt.Sprintf("write a number from %d to %d (%s)", k.Min, k.Max, k.Doc))
			c.bad(path, hint, "%d is not between %d and %d", n, k.Min, k.Max)
		}
	}
}

func (c *checker) word(s, path string, k Key) {
	switch {
	case s == "" && k.Required:
		hint := ""
		if len(k.Enum) > 0 {
			hint = "write one of: " + strings.Join(k.Enum, ", ")
		}
		c.bad(path, hint, "is missing")
	case len(k.Enum) > 0 && !slices.Contains(k.Enum, s):
		hint := "write one of: " + strings.TrimPrefix(strings.Join(k.Enum, ", "), ", ")
		if near := Nearest(s, k.Enum); near != "" {
			hint = fmt.Sprintf("did you mean %s?", near)
		}
		c.bad(path, hint, "%q is not known", clip(s))
	default:
		c.printable(s, path)
	}
}

// printable refuses characters that are unsafe on a terminal, in a file or in a shell, or not allowed in YAML.
func (c *checker) printable(s, path string) {
	if !utf8.ValidString(s) {
		c.bad(path, "write it as UTF-8", "is not valid text")
	} else if strings.ContainsRune(s, 0) {
		c.bad(path, "remove the NUL character", "is not valid text")
	} else if secretText(s) {
		c.bad(path, secretHint, "holds a secret")
	}
}

// The thumbprint that a login compares is of SHA-256; a certificate with a given SHA-1 can be forged (NIST, "Transitioning Away
// from SHA-1", 2022), although older vSphere Clients and esxcli display that one.
var (
	thumbprint     = regexp.MustCompile(`^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){31}$|^[0-9A-Fa-f]{64}$`)
	sha1Thumbprint = regexp.MustCompile(`^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){19}$|^[0-9A-Fa-f]{40}$`)
)

func (c *checker) vcenter(v VCenter) {
	if v.URL != "" {
		u, err := url.Parse(v.URL)
		switch {
		case err != nil || u.Host == "" || u.Hostname() == "":
			c.bad("vcenter.url", "", "%q is not a URL", clip(backends.ShownURL(v.URL)))
		case u.Scheme != "https":
			c.bad("vcenter.url", "write https://; otherwise the password is sent unencrypted", "%q is not https", u.Scheme)
		case u.User != nil:
			c.bad("vcenter.url", "write the account under vcenter.username", "holds user info")
		default:
			if _, err := backends.VCenterAddress(v.URL); err != nil {
				c.bad("vcenter.url", backends.HintOf(err), "%s", err)
			}
		}
	}
	if sha1Thumbprint.MatchString(v.Thumbprint) {
		c.bad("vcenter.thumbprint",
			"read the SHA-256 one with: openssl s_client -connect HOST:443 </dev/null | openssl x509 -noout -fingerprint -sha256",
			"is a SHA-1 thumbprint, which is not accepted")
	} else if v.Thumbprint != "" && !thumbprint.MatchString(v.Thumbprint) {
		c.bad("vcenter.thumbprint", "", "%q is not a thumbprint", clip(v.Thumbprint))
	}
}

var (
	vmnic   = regexp.MustCompile(`^vmnic[0-9]{1,4}$`)
	vmk     = regexp.MustCompile(`^vmk[0-9]{1,4}$`)
	version = regexp.MustCompile(`^[0-9]{1,3}(\.[0-9]{1,3}){1,3}$`)
)

func (c *checker) hosts(a *Answers) {
	seen := map[string]int{}
	for i, n := range a.Hosts.Names {
		path := fmt.Sprintf("hosts.names[%d]", i)
		if n == "" {
			c.bad(path, "", "is empty")
		} else if first, twice := seen[n]; twice {
			c.bad(path, "name each host once", "%q appears twice, first as hosts.names[%d]", clip(n), first)
		} else {
			seen[n] = i
		}
	}
	for _, host := range sorted(a.ESXi.Addresses) {
		c.dialable(a.ESXi.Addresses[host], "esxi.addresses{"+host+"}", true)
	}
}

// imageName matches a docker reference with a tag or digest: without either it may be another image tomorrow.
var imageName = regexp.MustCompile(
	`^[a-z0-9]+([._:-][a-z0-9]+)*(/[a-z0-9]+([._-]{1,2}[a-z0-9]+)*)*(:[A-Za-z0-9_][A-Za-z0-9._-]{0,127}|@sha256:[0-9a-f]{64})$`)

func (c *checker) container(o Container) {
	for path, name := range map[string]string{"container.image": o.Image, "container.base": o.Base} {
		_, last, _ := strings.Cut(name[strings.LastIndex(name, "/")+1:], ":")
		if name != "" && (!imageName.MatchString(name) || last == "" && !strings.Contains(name, "@")) {
			c.bad(path, "", "%q is not a container image with a tag", clip(name))
		}
	}
	switch {
	case o.Base == "":
	case o.Image == "":
		c.bad("container.image", "", "is missing, but container.base is set: the image that is built needs a name")
	case o.Image == o.Base:
		c.bad("container.image", "give the image that is built another name", "%q is the image that it is built from", clip(o.Image))
	case strings.Contains(o.Image, "@"):
		c.bad("container.image", "", "%q has a digest, which is known only when it is built", clip(o.Image))
	}
}

func (c *checker) dialable(s, path string, port bool) {
	host := s
	if _, err := netip.ParseAddr(s); err != nil && strings.Contains(s, ":") {
		h, p, err := net.SplitHostPort(s)
		n, perr := strconv.Atoi(p)
		if err != nil || perr != nil || n < 1 || n > 65535 || !port {
			c.bad(path, "", "%q is not an address", clip(s))
			return
		}
		host = h
	}
	// ssh would parse a leading dash as an option; a space or slash is never part of a name.
	if host == "" || strings.HasPrefix(host, "-") || strings.ContainsFunc(host, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune("/@'\"`$;&|<>()", r)
	}) {
		c.bad(path, "", "%q is not an address", clip(s))
	}
}

// boardID matches a board id (PSID): up to 16 characters.
var boardID = regexp.MustCompile(`^[A-Za-z0-9_]{4,16}$`)

func (c *checker) fabric(a *Answers) {
	c.vmknic(a.PVRDMA.VMKNic, a.AllRails()[0].Switch)
	if a.NoHCA() && a.Several() {
		c.bad("pvrdma.allow_no_hca", "set optional: true for the rails that some hosts lack", "works with one rail, and there are several")
	}
	if a.QoS.Lossless == LosslessPFC && a.QoS.DSCP/8 != a.QoS.Priority {
		c.bad("qos.dscp", fmt.Sprintf("write a DSCP from %d to %d, or change qos.priority", a.QoS.Priority*8, a.QoS.Priority*8+7),
			"DSCP %d falls into priority %d, PFC protects priority %d", a.QoS.DSCP, a.QoS.DSCP/8, a.QoS.Priority)
	}
	for i, p := range a.SRIOV.Components {
		c.packaged(fmt.Sprintf("sriov.components[%d]", i), p)
	}
	for _, psid := range sorted(a.SRIOV.Firmware) {
		file, path := nic.DatastorePath(a.SRIOV.Firmware[psid]), "sriov.firmware{"+psid+"}"
		switch {
		case !boardID.MatchString(psid):
			c.bad(path, "write the PSID of the card, as the check HOST-PNIC-PSID-008 shows it: MT_0000000009", "%q is not a PSID", clip(psid))
		case !strings.HasPrefix(file, "/vmfs/volumes/") || strings.Contains(file, "/../"):
			c.bad(path, "", "%q is not a datastore path", clip(a.SRIOV.Firmware[psid]))
		case nic.ImageVersion(file) == "":
			c.bad(path, "", "the name of %q does not contain the version of its firmware", clip(a.SRIOV.Firmware[psid]))
		}
	}
	if t := a.Run.Reboot.Limit(); t.Minutes() < 1 || t.Hours() > 24 {
		c.bad("run.reboot.timeout", "", "%s is not between 1m and 24h", a.Run.Reboot.Timeout)
	}
}

// objectName checks the name of an object that may have to be created: vSphere allows 80 characters.
func (c *checker) objectName(s, path string) {
	switch {
	case s == "":
		c.bad(path, "", "is empty")
	case utf8.RuneCountInString(s) > 80:
		c.bad(path, "vSphere allows up to 80 characters", "is too long")
	case strings.ContainsFunc(s, unicode.IsControl):
		c.bad(path, "write a name without control characters", "%q is not a valid name", clip(s))
	case slices.ContainsFunc(strings.FieldsFunc(s, func(r rune) bool { return r == '/' || r == '\\' }),
		func(part string) bool { return part == "." || part == ".." }):
		// vSphere keeps a slash in a name as %2f (vSphere Web Services API, ManagedEntity.name), so a name may contain one.
		c.bad(path, "write a name, not a path", "%q is a path", clip(s))
	case strings.TrimSpace(s) != s:
		c.bad(path, "remove the spaces around it", "%q begins or ends with a space", clip(s))
	}
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func (c *checker) packaged(path, location string) {
	switch {
	case strings.Contains(location, "://"):
		if _, ok := nic.Bundle(location); !ok {
			c.bad(path, "write http:// or https://, without a password, and keep the name of the bundle: COMPONENT_VERSION_BUILD.zip",
				"%q is not a URL of an offline bundle", clip(location))
		}
	case !strings.HasPrefix(location, "/vmfs/volumes/") || strings.Contains(location, "/../"):
		if _, ok := nic.Bundle(location); !ok { // else a file of this computer
			c.bad(path, "", "%q is not a datastore path", clip(location))
		}
	}
}
