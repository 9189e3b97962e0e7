package fault

// Help returns the keys of a rule, then its actions, each with a description.
func Help() [][2]string {
	return [][2]string{
		{"host=NAME", "calls for this host, by name or pattern (esx-*); default: any host"},
		{"vm=NAME", "calls for this VM, and commands in its guest; a name or a pattern"},
		{"method=NAME", "a vCenter method, with or without the suffix _Task"},
		{"command=TEXT", "a command in a guest or an ESXi shell: the start of the command line, or the name of the program"},
		{"nth=N", "only the Nth matching call, counted from 1; default: every matching call"},
		{"do=" + DoFault + ":NAME", "return this vSphere fault, such as NoPermission"},
		{"do=" + DoSlow + ":D", "wait before continuing, such as 5s"},
		{"do=" + DoDrop, "close the connection before anything is done"},
		{"do=" + DoDropAfter, "do it, then close the connection without a response"},
		{"do=" + DoHang, "never respond; a command ends when the rules are cleared"},
		{"do=" + DoGarbage, "do it, then return an invalid response; a command prints garbage instead of running"},
		{"do=" + DoExpire, "end all sessions of the vCenter first"},
		{"do=" + DoTaskError + ":TEXT", "accept the call; its task ends with this text"},
		{"do=" + DoTaskFault + ":NAME", "accept the call; its task ends with this vSphere fault"},
		{"do=" + DoTaskCancel, "accept the call; its task is cancelled before it takes effect"},
		{"do=" + DoTaskStay, "accept the call; its task does nothing, and ends when the rules are cleared"},
		{"do=" + DoTaskHold, "accept the call; its task does its work when the rules are cleared"},
		{"do=" + DoFail + ":TEXT", "the command ends with status 1 and this text"},
		{"do=" + DoRebootNever, "a reboot of the host, or of the guest of the VM, never ends"},
		{"do=" + DoDisconnect, "when a VM is powered on, only its first adapter connects"},
		{"do=" + DoHTTP + ":N", "return this HTTP status"},
		{"do=" + DoKill + ":N", "the command is killed with SIGKILL at its step N, counted from 1"},
		{"do=" + DoReset + ":N", "the guest loses power at step N of the command, and starts again"},
		{"do=" + DoNoise + ":BYTES", "the command prints this many bytes of hostile text, then does its work"},
	}
}
