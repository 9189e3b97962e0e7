package backends

import (
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// VCenterAddress reads the address of a vCenter as an operator writes it: https:// and /sdk may be omitted. vCenter serves its API
// at /sdk: VMware's own clients use this path by default (govmomi, vim25/soap/client.go, ParseURL; pyVmomi, pyVim/connect.py,
// SmartConnect). A proxy may have a path before it. No error repeats the address, which may contain a password.
func VCenterAddress(text string) (*url.URL, error) {
	bad := func(why string, args ...any) (*url.URL, error) {
		return nil, Errorf(KindUsage, "", "use a form like https://vcenter.example/sdk", "the vCenter address "+why, args...)
	}
	text = strings.TrimSpace(text)
	ip, err := netip.ParseAddr(text)
	switch {
	case text == "":
		return bad("is empty")
	case strings.ContainsAny(text, " \t\r\n"):
		return bad("contains a space")
	case err == nil && ip.Is6():
		return bad("is an IPv6 address without brackets")
	case !strings.Contains(text, "://"):
		text = "https://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || strings.ContainsAny(u.Hostname(), `!"$&'()*+,;<=>@`) {
		return bad("is not a URL")
	}
	if slices.ContainsFunc(strings.Split(u.Hostname(), "."), func(label string) bool { return len(label) > 63 }) || len(u.Hostname()) > 253 {
		return bad("has a host name that is too long for DNS") // RFC 1035, section 2.3.4
	}
	if u.Scheme != "https" && u.Scheme != "http" {
		return bad("has the scheme %q", u.Scheme)
	}
	if n, err := strconv.Atoi(u.Port()); strings.HasSuffix(u.Host, ":") || u.Port() != "" && (err != nil || n < 1 || n > 65535) {
		return bad("has no port from 1 to 65535 after the colon")
	}
	u.Path = strings.TrimRight(u.Path, "/")
	if u.Path == "" {
		u.Path = "/sdk"
	}
	if u.RawQuery != "" || u.Fragment != "" || !strings.HasSuffix(u.Path, "/sdk") {
		return bad("has a path other than /sdk")
	}
	if _, has := u.User.Password(); has {
		return nil, Errorf(KindUsage, "", "take it out of the URL and set RDMA_SETUP_PASSWORD or use --password-file",
			"the vCenter address holds a password")
	}
	return u, nil
}

// ShownURL returns an address as texts show it: without user info, query and fragment.
func ShownURL(text string) string {
	scheme, rest, is := strings.Cut(text, "://")
	if !is {
		return text
	}
	rest, _, _ = strings.Cut(rest, "#")
	rest, _, _ = strings.Cut(rest, "?")
	return scheme + "://" + rest[strings.LastIndex(rest, "@")+1:] // a password may contain a slash
}

// ErrorText returns the text of an error without the addresses that net/url writes into it: a path or query may be a ticket, and
// user info a password. What it says of an address that it cannot parse quotes a part of it.
func ErrorText(err error) string {
	text := err.Error()
	for _, e := range causes(err) {
		u, is := e.(*url.Error)
		switch {
		case !is:
		case u.Op == "parse":
			text = strings.ReplaceAll(text, u.Error(), "the address is not valid")
		default:
			text = strings.ReplaceAll(text, u.Error(), ErrorText(u.Err))
		}
	}
	return text
}

// causes returns an error and all that it wraps.
func causes(err error) []error {
	all := []error{err}
	if many, is := err.(interface{ Unwrap() []error }); is {
		for _, e := range many.Unwrap() {
			all = append(all, causes(e)...)
		}
	} else if e := errors.Unwrap(err); e != nil {
		all = append(all, causes(e)...)
	}
	return all
}
