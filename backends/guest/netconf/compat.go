package netconf

// A Config is the configuration of one interface in the files.
type Config struct {
	File      string
	ID        string
	Addresses []string
	MTU       int
	DHCP      bool
	Managed   bool
	Table     int
}

// Finder returns a function that returns the configuration of an interface in the files of a system.
func Finder(s System, files []File) func(NIC) (Config, bool) {
	return func(nic NIC) (Config, bool) {
		p, ok := For(s)
		if !ok {
			return Config{}, false
		}
		all, err := p.Effective(files, []Link{{Name: nic.Name, MAC: nic.MAC, Device: true}})
		if err != nil || all[0].File == "" || all[0].Unmanaged {
			return Config{}, false
		}
		e := all[0]
		return Config{File: e.File, ID: e.ID, Addresses: e.Addresses, MTU: e.MTU, DHCP: e.DHCP4, Managed: e.Renderer == NetworkManager && s == Netplan, Table: e.Table}, true
	}
}

// Write returns the one file that makes the address persistent; false for an unknown system.
func Write(s System, files []File, a Static) (File, bool) {
	return FileFor(s, a)
}
