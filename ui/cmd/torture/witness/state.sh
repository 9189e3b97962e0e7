# Prints the state of a guest: files, links, packages, units, processes, modules and the network. Plain tools only.
tab=$(printf '\t')
dirs="/etc /usr/lib/systemd /usr/local /opt /var/tmp /tmp /run /boot /root /lib/modules"
for d in $dirs; do [ -d "$d" ] && find "$d" -type f; done | sort | while read -r f; do
	sum=$(sha256sum "$f" 2>/dev/null)
	printf 'file\t%s sha256\t%s\n' "$f" "${sum%% *}"
	printf 'file\t%s mode\t%s\n' "$f" "$(stat -c '%a %u:%g' "$f")"
done
for d in $dirs; do [ -d "$d" ] && find "$d" -type d; done | while read -r f; do
	printf 'dir\t%s\t%s\n' "$f" "$(stat -c '%a %u:%g' "$f")"
done
for d in $dirs; do [ -d "$d" ] && find "$d" -type l; done | while read -r f; do
	printf 'link\t%s\t%s\n' "$f" "$(readlink "$f")"
done
# Every path there is, whatever it is and whoever made it: locks, sockets and working directories of any name.
find / ! -path '/proc/*' ! -path '/sys/*' ! -path '/dev/*' | while read -r f; do printf 'path\t%s\tthere\n' "$f"; done
find /dev/shm | while read -r f; do printf 'path\t%s\tthere\n' "$f"; done
if command -v lsinitramfs >/dev/null 2>&1; then
	for f in /boot/initrd.img-*; do printf 'initrd\t%s\t%s\n' "$f" "$(lsinitramfs "$f" | sort | sha256sum)"; done
fi
if command -v dpkg-query >/dev/null 2>&1; then
	dpkg-query -W -f '${db:Status-Abbrev} ${Package} ${Version}\n' | while read -r state name version; do
		printf 'package\t%s\t%s %s\n' "$name" "$state" "$version"
	done
	printf 'dpkg\taudit\t%s\n' "$(dpkg --audit 2>&1 | head -n 1)"
elif command -v rpm >/dev/null 2>&1; then
	rpm -qa | while read -r name; do printf 'package\t%s\tinstalled\n' "$name"; done
fi
systemctl list-unit-files --no-legend --no-pager 2>/dev/null | while read -r name state _; do
	printf 'unit\t%s\t%s\n' "$name" "$state"
	printf 'active\t%s\t%s\n' "$name" "$(systemctl is-active "$name")"
done
# What systemd has in memory: units that have failed, that lost their file, or that never had one.
systemctl list-units --all --no-legend --no-pager --plain 2>/dev/null | while read -r name load state _; do
	printf 'loaded\t%s\t%s %s\n' "$name" "$load" "$state"
done
ps -eo args= 2>/dev/null | grep -i rdma-setup | grep -v -e grep -e 'find /' | while read -r p; do printf 'process\t%s\trunning\n' "$p"; done
cut -d ' ' -f 1 /proc/modules | while read -r name; do printf 'modules\t%s\tloaded\n' "$name"; done
ip -o link show | while read -r _ name rest; do printf 'iplink\t%s\t%s\n' "$name" "$rest"; done
ip -o addr show | while read -r _ name family addr _; do printf 'address\t%s %s\t%s\n' "$name" "$family" "$addr"; done
ip route show | while read -r to rest; do printf 'route\t%s\t%s\n' "$to" "$rest"; done
echo "end$tab"
