#!/bin/sh
# Prints the current state of the items that a change may affect: read-state.sh KIND NAME...
#
#   file PATH    "file MODE|OWNER|SIZE|PATH", the bytes, a newline, "end PATH"; a file that an interrupted write has left beside it too.
#                Anything but a plain file: "is file|PATH|WHAT"
#   link PATH    "is link|PATH|TARGET"
#   sysctl PATH  "is sysctl|PATH|NUMBER", below /proc/sys
#   unit NAME    "is unit|NAME|ENABLEMENT ACTIVITY"; of an enabled unit "enabled" alone: each boot starts it, so whether it
#                runs says nothing about who changed it
#   images -     "is initramfs|IMAGE|WHAT" for each initial RAM disk of initramfs-tools that contains files of this program, or has
#                an unfinished one beside it (update-initramfs writes IMAGE.new and renames it)
#
# Nothing is printed for missing items. The exit code is 1 if an item cannot be read, or systemctl does not answer although systemd
# runs (sd_booted(3)).
failed() {
	echo "$*" >&2
	exit 1
}
unread() { [ ! -d /run/systemd/system ] || failed "systemctl $1 $name: ${2:-no answer}"; }
while [ $# -gt 1 ]; do
	kind=$1 name=$2
	shift 2
	case $kind in
	file)
		for f in "$name" "${name%/*}/.${name##*/}".??????; do
			if [ -L "$f" ]; then
				to=$(readlink "$f") || { [ -L "$f" ] || continue; failed "readlink $f: no answer"; }
				echo "is file|$f|symbolic link to $to"
			elif [ -f "$f" ]; then
				# Another process may remove, replace or write it now. A length that differs from SIZE shows in the place of "end".
				is=$(stat -c '%a|%u:%g|%s' "$f") || { [ -e "$f" ] || continue; failed "stat $f: no answer"; }
				echo "file $is|$f"
				cat "$f" || [ ! -e "$f" ] || failed "cat $f: no answer"
				printf '\nend %s\n' "$f"
			elif [ -e "$f" ]; then
				echo "is file|$f|$(stat -c '%F' "$f")"
			fi
		done
		;;
	link)
		if [ -L "$name" ]; then
			to=$(readlink "$name") || failed "readlink $name: no answer"
			echo "is link|$name|$to"
		elif [ -e "$name" ]; then
			echo "is link|$name|$(stat -c '%F' "$name")"
		fi
		;;
	sysctl) [ ! -r "/proc/sys/$name" ] || echo "is sysctl|$name|$(cat "/proc/sys/$name")" ;;
	unit)
		command -v systemctl >/dev/null || continue
		enabled=$(systemctl is-enabled "$name" 2>/dev/null)
		# Without a state there is no such unit, or systemctl failed: systemctl of systemd 252 prints "Failed to get unit file state
		# for UNIT: No such file or directory" on stderr and ends with 1.
		[ -n "$enabled" ] || enabled=$(LC_ALL=C systemctl is-enabled "$name" 2>&1)
		case $enabled in
		enabled | enabled-runtime | linked | linked-runtime | alias | masked | masked-runtime | static | indirect | disabled) ;;
		generated | transient | bad) ;;
		not-found | *': No such file or directory') enabled=absent ;;
		*)
			unread is-enabled "$enabled"
			enabled=absent
			;;
		esac
		active=$(systemctl is-active "$name" 2>/dev/null)
		case $active in
		active | activating | reloading) active=active ;;
		'') unread is-active '' ;;
		*) active=inactive ;;
		esac
		active=${active:-inactive}
		state="$enabled $active"
		case $enabled in enabled*) state=$enabled ;; esac
		[ "$state" = 'absent inactive' ] || echo "is unit|$name|$state"
		;;
	images)
		# On a machine with a disk of its own lsinitramfs takes about half a second for an image of 60 MB.
		command -v lsinitramfs >/dev/null 2>&1 || continue
		for i in /boot/initrd.img-*; do
			case $i in *.new | *.bak | *.dpkg-bak) continue ;; esac
			[ -f "$i" ] || continue
			[ -d "/lib/modules/${i#/boot/initrd.img-}" ] || continue # a copy that DKMS keeps
			holds=$(lsinitramfs -l "$i" 2>/dev/null | awk '/rdma-setup/ {print $NF, $5}' | sort | tr '\n' ' ')
			[ ! -e "$i.new" ] || holds="$holds(unfinished)"
			[ -z "$holds" ] || echo "is initramfs|$i|$holds"
		done
		;;
	esac
done
