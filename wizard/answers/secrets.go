package answers

import (
	"regexp"
	"strings"

	yaml "go.yaml.in/yaml/v4"
)

const secretHint = "remove it and change the secret; secrets come from a prompt, RDMA_SETUP_PASSWORD, --password-file or --password-stdin"

var (
	secretName = regexp.MustCompile(`(?i)(pass(word|wd|phrase)?$|^pw$|pwd$|secret|token|private[-_ ]?key|api[-_ ]?key|access[-_ ]?key|credential|ssh[-_ ]?key$)`)
	userInfo   = regexp.MustCompile(`(?i)[a-z][a-z0-9+.-]*://[^/\s@]*:[^/\s@]*@`)
)

func secretKey(key string) bool { return secretName.MatchString(key) }

// secretText reports whether a value looks like a secret: PEM text, or a URL with user info.
func secretText(s string) bool {
	return strings.Contains(s, "-----BEGIN ") || userInfo.MatchString(s)
}

// secrets reports every secret in the tree without repeating its value.
func (d *decoder) secrets(n *yaml.Node, path string) {
	switch n.Kind {
	case yaml.DocumentNode, yaml.SequenceNode:
		for _, c := range n.Content {
			d.secrets(c, path)
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			kn, vn := n.Content[i], n.Content[i+1]
			switch {
			case secretText(kn.Value):
				d.report(kn, path, secretHint, "secrets are not allowed in this file")
			case kn.Kind == yaml.ScalarNode && secretKey(kn.Value):
				d.report(kn, join(path, clip(kn.Value)), secretHint, "secrets are not allowed in this file")
			default:
				d.secrets(vn, join(path, clip(kn.Value)))
			}
		}
	case yaml.ScalarNode:
		switch {
		case strings.Contains(n.Value, "-----BEGIN "):
			d.report(n, path, secretHint, "holds a key or certificate")
		case userInfo.MatchString(n.Value):
			d.report(n, path, "remove user and password from the URL, and write the user under vcenter.username", "the URL holds a password")
		}
	}
}
