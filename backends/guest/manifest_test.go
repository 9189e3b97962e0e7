package guest

import (
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
)

// What a change may affect is recorded as it was, or not at all: a record of something else could never be restored.
func TestItemsThatAreNotUnderstood(t *testing.T) {
	for out, want := range map[string]string{ // "": an error
		"is initramfs|/boot/initrd.img-5.15|etc/modules-load.d/rdma-setup.conf 12 usr/lib/rdma-setup.conf 0 \n": "etc/modules-load.d/rdma-setup.conf 12 usr/lib/rdma-setup.conf 0",
		"is initramfs|/boot/initrd.img-5.15|etc/rdma-setup.conf 12 (unfinished)\n": "etc/rdma-setup.conf 12 " +
			"(unfinished)",
		"is initramfs|/boot/initrd.img-5.15|(unfinished)\n":                           "(unfinished)",
		"is initramfs|/boot/initrd.img-5.15|Segmentation fault\n":                     "",
		"is initramfs|/boot/initrd.img-5.15|etc/rdma-setup.conf\n":                    "",
		"file ?|0:0|1|/etc/x\na\nend /etc/x\n":                                        "",
		"file 644||1|/etc/x\na\nend /etc/x\n":                                         "",
		"file 644|0:0|3|/etc/x\na\nend /etc/x\n":                                      "",
		"file 644|0:0|3|/etc/x\nab\nend /etc/x\n":                                     "",
		"file 644|0:0|3|/etc/x\nabcd\nend /etc/x\n":                                   "",
		"file 644|0:0|30|/etc/x\n\nend /etc/x\nis unit|x.service|disabled inactive\n": "",
		"file 644|0:0|3|/etc/x\nabc\nend /etc/y\n":                                    "",
		"file 644|0:0|3|/etc/x\nabc\n":                                                "",
		"file 644|0:0|3|/etc/x\nabc\nend /etc/x\n": "mode 0644; owner 0:0; sha256 " +
			"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
		// The first was removed after its size was printed, and a newline of the next one stands where its content would end.
		"file 644|0:0|41|/etc/.x.abcdef\n\nend /etc/.x.abcdef\nfile 644|0:0|4|/etc/y\nabc\n\nend /etc/y\n": "",
		"Welcome to vm-01\nis unit|x.service|disabled inactive\n":                                          "disabled inactive",
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

// FuzzParseItems checks that what is recorded of a guest is part of its output.
func FuzzParseItems(f *testing.F) {
	for _, seed := range []string{
		"file 644|0:0|3|/etc/x\nabc\nend /etc/x\nis unit|x.service|enabled active\n",
		"is initramfs|/boot/initrd.img-5.15|etc/rdma-setup.conf 12 (unfinished)\n",
		"is link|/etc/x|../y|z\n", "file 644|0:0|-1|/etc/x\n", "Welcome\nfile\nis\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, out string) {
		items, err := parseItems(out)
		if err != nil && items != nil {
			t.Errorf("%v, and %d items", err, len(items))
		}
		for _, i := range items {
			if !strings.Contains(out, i.Name) || strings.Contains(i.Name, "\n") || i.Kind == backends.ItemFile && len(i.Content) > 0 &&
				!strings.Contains(out, i.Name+"\n"+string(i.Content)+"\n") {
				t.Errorf("%+v", i)
			}
		}
	})
}
