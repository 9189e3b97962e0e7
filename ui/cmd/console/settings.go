package console

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/rdma-setup/rdma-setup/backends"
)

// Settings say how to connect and where to keep state: flags over environment over file over defaults. The operator's requests
// are in the answers, not here.
type Settings struct {
	URL        string
	Username   string
	Password   Secret
	Thumbprint string
	CACerts    string
	Insecure   bool
	WeakSSH    bool

	SSHUser       string
	SSHKey        string
	KnownHosts    string
	Jump          string
	ESXiPassword  Secret
	ESXiPasswords string // file with a password for each host
	GuestPassword Secret
	SudoPassword  Secret

	Lab      bool
	LabArgs  []string // flags of the private lab
	OwnLab   bool     // the command changes the private lab and must not share it with another such command
	LabOf    string   // the vCenter's address when continuing a run that began on a private lab; "" otherwise
	StateDir string
	LogLevel string
	Verbose  bool
	Trace    string // file
	Timeout  time.Duration

	sources map[string]string // by key: what has set it, "--ssh-key" or "RDMA_SETUP_SSH_KEY"; none for a default

	GuestTimeout time.Duration // limit for reading one guest: an unreachable one costs this once, not the sum
	HostTimeout  time.Duration // limit for all esxcli calls of one host
}

// byVariable are the settings that environment variables set, RDMA_SETUP_SSH_KEY for ssh-key; govcs are those of govc.
var (
	byVariable = strings.Fields(
		"url username password thumbprint ca-certs insecure ssh-user ssh-key known-hosts jump ssh-weak esxi-password " +
			"esxi-passwords guest-password sudo-password state-dir log-level password-command esxi-password-command guest-password-command " +
			"sudo-password-command guest-timeout host-timeout")
	govcs = map[string]string{"url": "GOVC_URL", "username": "GOVC_USERNAME", "password": "GOVC_PASSWORD", "ca-certs": "GOVC_TLS_CA_CERTS",
		"insecure": "GOVC_INSECURE"}
)

// variables returns the environment variables of a setting, the most specific first.
func variables(key string) []string {
	if !slices.Contains(byVariable, key) {
		return nil
	}
	return []string{"RDMA_SETUP_" + strings.ToUpper(strings.ReplaceAll(strings.Replace(key, "ca-certs", "tls-ca-certs", 1), "-", "_")),
		govcs[key]}
}

// AddSettings adds the global flags to the root.
func AddSettings(fs *pflag.FlagSet) {
	fs.String("url", "", "vCenter address, https://vc.example/sdk (RDMA_SETUP_URL, GOVC_URL)")
	fs.String("username", "", "vCenter account (RDMA_SETUP_USERNAME, GOVC_USERNAME)")
	fs.String("password-file", "", "file whose first line is the vCenter password (or set RDMA_SETUP_PASSWORD, GOVC_PASSWORD)")
	fs.Bool("password-stdin", false, "read the vCenter password from stdin")
	fs.String("password-command", "",
		"command whose first line of output is the vCenter password; it runs without a shell (RDMA_SETUP_PASSWORD_COMMAND)")
	fs.String("esxi-password-command", "", "the same for the password of the ESXi hosts (RDMA_SETUP_ESXI_PASSWORD_COMMAND)")
	fs.String("guest-password-command", "", "the same for the log-in password in the guests (RDMA_SETUP_GUEST_PASSWORD_COMMAND)")
	fs.String("sudo-password-command", "", "the same for the sudo password in the guests (RDMA_SETUP_SUDO_PASSWORD_COMMAND)")
	fs.String("esxi-passwords", "",
		"file with an ESXi host and its password on each line (RDMA_SETUP_ESXI_PASSWORDS); for one password for all hosts, set "+
			"RDMA_SETUP_ESXI_PASSWORD")
	fs.String("thumbprint", "", "SHA-256 thumbprint of vCenter's certificate to accept")
	fs.String("ca-certs", "", "PEM files with certificates to trust, separated by colons (GOVC_TLS_CA_CERTS)")
	fs.Bool("insecure", false, "do not verify vCenter's certificate (GOVC_INSECURE); every screen and report says so")
	fs.String("ssh-user", "", "account in the guests, if the answers set none")
	fs.String("ssh-key", "", "private key file for the guests (RDMA_SETUP_SSH_KEY)")
	fs.String("known-hosts", "", "known_hosts file (RDMA_SETUP_KNOWN_HOSTS; default ~/.ssh/known_hosts)")
	fs.String("jump", "", "SSH jump host: [user@]host[:port]")
	fs.Bool("ssh-weak", false, "also allow SHA-1 and CBC, for SSH servers that support nothing else; every screen and report says so")
	fs.String("state-dir", "", "directory for runs (default $XDG_STATE_HOME/rdma-setup)")
	fs.String("log-level", "info", "level of the run's log file: debug, info, warn or error; debug adds every call, as --trace does")
	fs.Duration("guest-timeout", 40*time.Second, "time limit for reading one guest; guests are read in parallel")
	fs.Duration("host-timeout", 30*time.Second, "time limit for the esxcli calls of one host; hosts are read in parallel")
	fs.String("config", "", "settings file (default $XDG_CONFIG_HOME/rdma-setup/config.yaml)")
	fs.BoolP("verbose", "v", false,
		"print a line on stderr for each vCenter call, ended task, SSH login and remote command: METHOD target duration outcome")
	fs.String("trace", "", "write each call, with request id, sizes and a payload summary, to this file as JSON lines")
	fs.Bool("no-pager", false, "do not show long output in $PAGER, which is used on terminals only")
	fs.Bool("lab", false, "use a private lab instead of a real vCenter; everything is simulated")
	fs.String("guest-files", "", "directory whose files the lab's guests have at their first boot: VM/PATH for one VM, all/PATH for every VM")
	fs.String("command-times", "fast", "duration of commands in the lab's guests and hosts: fast or real")
	fs.Float64("clock-scale", 1, "factor for the lab's real command times: 0.1 makes them ten times as fast")
}

// changesLab reports whether a command changes or loads the lab: the wizard, which has no parent, and these.
func changesLab(cmd *cobra.Command) bool {
	return !cmd.HasParent() || slices.Contains([]string{"apply", "bench", "deploy"}, cmd.Name())
}

// ReadSettings combines flags, environment, file and defaults.
func ReadSettings(e *Env, cmd *cobra.Command) (*Settings, error) {
	file, explicit := cmd.Flags().Lookup("config").Value.String(), true
	if file == "" {
		file, explicit = filepath.Join(xdg(e, "XDG_CONFIG_HOME", ".config"), "rdma-setup", "config.yaml"), false
	}
	conf := viper.New()
	conf.SetConfigType("yaml") // whatever its extension
	text, err := backends.InputSettings.ReadFile(file)
	if err == nil {
		err = conf.ReadConfig(bytes.NewReader(text))
	}
	if backends.KindOf(err) == backends.KindUsage {
		return nil, err
	}
	if err != nil && (explicit || !errors.Is(err, fs.ErrNotExist)) {
		return nil, Usage("--config needs a YAML file whose keys are names of flags", "settings file %s: %v", file, err)
	}
	if err := knownSettings(conf, file); err != nil {
		return nil, err
	}
	s := &Settings{sources: map[string]string{}}
	look := finder(e, cmd, conf, file)
	get := func(key string) string {
		v := look(key)
		s.sources[key] = v.source
		return v.text
	}
	var invalid error
	yes := func(key string) bool {
		switch text := get(key); strings.ToLower(text) {
		case "true", "1", "yes", "on":
			return true
		case "", "false", "0", "no", "off":
		default:
			invalid = Usage("use true or false", "%s: %q is neither true nor false", cmp.Or(s.sources[key], "--"+key), text)
		}
		return false
	}
	for key, into := range map[string]*string{
		"url": &s.URL, "username": &s.Username, "thumbprint": &s.Thumbprint, "ca-certs": &s.CACerts, "ssh-user": &s.SSHUser, "ssh-key": &s.SSHKey,
		"known-hosts": &s.KnownHosts, "jump": &s.Jump, "esxi-passwords": &s.ESXiPasswords, "state-dir": &s.StateDir, "log-level": &s.LogLevel,
		"trace": &s.Trace,
	} {
		*into = get(key)
	}
	for key, into := range map[string]*Secret{"password": &s.Password, "esxi-password": &s.ESXiPassword, "guest-password": &s.GuestPassword,
		"sudo-password": &s.SudoPassword} {
		if *into, err = secretOf(key, look); err != nil {
			return nil, err
		}
	}
	if look("esxi-passwords").rank < s.ESXiPassword.rank {
		s.ESXiPasswords = "" // a file for each host is more specific than one password, but a flag beats a variable
	}
	s.Insecure, s.WeakSSH, s.Lab, s.Verbose, s.OwnLab = yes("insecure"), yes("ssh-weak"), yes("lab"), yes("verbose"), changesLab(cmd)
	e.NoPager = e.NoPager || yes("no-pager")
	if invalid != nil {
		return nil, invalid
	}
	for _, flag := range []string{"command-times", "clock-scale", "guest-files"} {
		if f := cmd.Flags().Lookup(flag); f != nil && f.Changed {
			s.LabArgs = append(s.LabArgs, "--"+flag, f.Value.String())
			s.OwnLab = s.OwnLab || flag == "guest-files" // a running lab may have others
		}
	}
	if !slices.Contains([]string{"debug", "info", "warn", "error"}, s.LogLevel) {
		return nil, Usage("use debug, info, warn or error", "log-level %q is not valid", s.LogLevel)
	}
	for key, into := range map[string]*time.Duration{"guest-timeout": &s.GuestTimeout, "host-timeout": &s.HostTimeout} {
		d, err := time.ParseDuration(get(key))
		if err != nil || d <= 0 {
			return nil, Usage("use a duration such as 40s or 2m", "%s %q is not a duration", key, get(key))
		}
		*into = d
	}
	if s.StateDir == "" {
		s.StateDir = filepath.Join(xdg(e, "XDG_STATE_HOME", filepath.Join(".local", "state")), "rdma-setup")
	}
	return s, nil
}

// WithSettings returns what a command runs if that needs the settings.
func WithSettings(e *Env, run func(cmd *cobra.Command, args []string, set *Settings) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		set, err := ReadSettings(e, cmd)
		if err != nil {
			return err
		}
		return run(cmd, args, set)
	}
}

// knownSettings refuses secrets in the settings file, and unknown keys.
func knownSettings(conf *viper.Viper, file string) error {
	known := pflag.NewFlagSet("", pflag.ContinueOnError)
	AddSettings(known)
	var names []string
	known.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	for _, key := range conf.AllKeys() {
		if slices.Contains([]string{"password", "esxi-password", "guest-password", "sudo-password"}, key) {
			return Usage("remove it and set RDMA_SETUP_PASSWORD, use --password-file or answer the prompt",
				"settings file %s: %s: the file must not contain secrets", file, key)
		}
		if !slices.Contains(names, key) {
			hint := Meant(key, names, "%s?", "list the allowed keys with: rdma-setup help global-flags")
			return Usage(hint, "settings file %s: %s: unknown key", file, key)
		}
	}
	return nil
}

// Unverified returns what is not verified at the operator's request, a sentence each; screens, checks and reports show it.
func (s *Settings) Unverified() []string {
	var out []string
	if s.Insecure && s.Thumbprint == "" {
		out = append(out,
			"vCenter's certificate is not verified (--insecure): somebody between this machine and vCenter can read the password and change "+
				"the traffic")
	}
	if s.WeakSSH {
		out = append(out,
			"SSH allows algorithms that are broken or weak (--ssh-weak): somebody between this machine and the servers may read or change "+
				"the traffic")
	}
	return out
}

// xdg returns a base directory of the XDG specification.
func xdg(e *Env, name, fallback string) string {
	if dir := e.Getenv(name); filepath.IsAbs(dir) {
		return dir
	}
	home := e.Getenv("HOME")
	if home == "" {
		home, _ = os.UserHomeDir()
	}
	return filepath.Join(home, fallback)
}
