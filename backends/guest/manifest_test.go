package guest

import "testing"

// What a change may affect is recorded as it was, or not at all: a record of something else could never be restored.
func TestItemsThatAreNotUnderstood(t *testing.T) {
	for out, want := range map[string]string{ // "": an error
		"is initramfs|/boot/initrd.img-5.15|etc/modules-load.d/rdma-setup.conf 12 usr/lib/rdma-setup.conf 0 \n": "etc/modules-load.d/rdma-setup.conf 12 usr/lib/rdma-setup.conf 0",
		"is initramfs|/boot/initrd.img-5.15|etc/rdma-setup.conf 12 (unfinished)\n":                              "etc/rdma-setup.conf 12 (unfinished)",
		"is initramfs|/boot/initrd.img-5.15|(unfinished)\n":                                                     "(unfinished)",
		"is initramfs|/boot/initrd.img-5.15|Segmentation fault\n":                                               "",
		"is initramfs|/boot/initrd.img-5.15|etc/rdma-setup.conf\n":                                              "",
		"file 644|0:0|3|/etc/x\na\n":                                                                            "",
		"file 644|0:0|3|/etc/x\nab\n":                                                                           "",
		"file 644|0:0|3|/etc/x\nabcd\n":                                                                         "",
		"file 644|0:0|30|/etc/x\n\nis unit|x.service|disabled inactive\n":                                       "",
		"Welcome to vm-01\nis unit|x.service|disabled inactive\n":                                               "disabled inactive",
	} {
		items, err := parseItems(out)
		got := ""
		if len(items) == 1 && err == nil {
			got = items[0].State.String()
		}
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %s, %v, want %s", out, got, err, want)
		}
	}
}
