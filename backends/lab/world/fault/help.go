package fault

// Help lists the keys of a rule, then its actions.
func Help() [][2]string {
	return [][2]string{
		{"host=NAME", "calls about this host; a name or a pattern (esx-*); without it any"},
		{"vm=NAME", "calls about this VM or in its guest; a name or a pattern"},
		{"method=NAME", "a vCenter method, with or without the suffix _Task"},
		{"command=TEXT", "a command in a guest or an ESXi shell: the begin of its line, or the name of the program"},
		{"nth=N", "the Nth matching call, from 1; without it every one"},
		{"do=" + DoFault + ":NAME", "answer with this vSphere fault, such as NoPermission"},
		{"do=" + DoSlow + ":D", "wait before going on, such as 5s"},
		{"do=" + DoDrop, "cut the connection before anything happens"},
		{"do=" + DoDropAfter, "do it, then cut the connection instead of answering"},
		{"do=" + DoHang, "never answer"},
		{"do=" + DoGarbage, "do it, then answer what nobody can read; a command does not run"},
		{"do=" + DoExpire, "end all sessions of the vCenter first"},
		{"do=" + DoTaskError + ":TEXT", "accept the call; its task ends with this text"},
		{"do=" + DoTaskFault + ":NAME", "accept the call; its task ends with this vSphere fault"},
		{"do=" + DoTaskCancel, "accept the call; its task is cancelled before it takes effect"},
		{"do=" + DoTaskStay, "accept the call; its task does nothing and ends when the rules are cleared"},
		{"do=" + DoFail + ":TEXT", "the command ends with status 1 and this text"},
		{"do=" + DoRebootNever, "the reboot that this starts does not end"},
		{"do=" + DoDisconnect, "adapters of a VM but the first do not connect when it is powered on"},
		{"do=" + DoHTTP + ":N", "answer with this HTTP status"},
		{"do=" + DoKill + ":N", "SIGKILL ends the command at its step N, from 1"},
		{"do=" + DoReset + ":N", "the guest loses its power and starts again at step N of the command"},
		{"do=" + DoNoise + ":BYTES", "the command prints so many bytes that mean harm, then does its work"},
	}
}
