#!/bin/sh
# Run clients that others wrote against a lab: govc, held against foreign.txt, pyVmomi (foreign.py), which speaks API 6.7.1 in
# Debian 12, and the modules of Ansible's community.vmware, held against ansible.txt. What each call has to answer is from the
# documentation of vSphere, of govc or of the module. The table of results goes to bin/foreign/table.txt.
#
#	backends/lab/foreign.sh PATH-OF-RDMA-SETUP
#
# govc is built from the govmomi release that go.mod pins; its own dependencies come through the Go module proxy, with the
# checksums of go.sum of that release. pyVmomi is Debian's python3-pyvmomi, and Ansible its ansible; without them those parts are
# left out, and said so.
set -eu
tool=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
here=$(cd "$(dirname "$0")" && pwd)
out=$here/../../bin/foreign
mkdir -p "$out/src"
out=$(cd "$out" && pwd)

version=$(cd "$here" && go list -m -f '{{.Version}}' github.com/vmware/govmomi)
source=$(cd "$here" && go list -m -f '{{.Dir}}' github.com/vmware/govmomi)
if [ ! -x "$out/govc-$version" ]; then
	{
		printf 'package main\n\nimport (\n\t"os"\n\n\t"github.com/vmware/govmomi/cli"\n'
		(cd "$source" && grep -rl --include='*.go' 'cli\.Register(' cli) | xargs -n1 dirname | sort -u |
			sed 's,.*,\t_ "github.com/vmware/govmomi/&",'
		printf ')\n\nfunc main() { os.Exit(cli.Run(os.Args[1:])) }\n'
	} >"$out/src/main.go"
	printf 'module govc\n\ngo 1.26.0\n\nrequire github.com/vmware/govmomi %s\n' "$version" >"$out/src/go.mod"
	cp "$source/go.sum" "$out/src/go.sum"
	(cd "$out/src" && GOFLAGS=-mod=mod go mod tidy && GOFLAGS=-mod=mod go build -o "$out/govc-$version" .)
fi
# Commands of foreign.txt say govc.
ln -sf "govc-$version" "$out/govc"
PATH=$out:$PATH

dir=$(mktemp -d)
lab=
stop() {
	if [ -n "$lab" ]; then
		kill "$lab" 2>/dev/null || :
		wait "$lab" || :
	fi
}
trap 'stop; rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM

# start serves a new lab, and sets the environment of the clients.
start() {
	stop
	: >"$dir/log"
	"$tool" lab --hosts 2 --vms 4 --dir "$dir" >"$dir/log" 2>&1 &
	lab=$!
	n=0
	until grep -q ^ready "$dir/log"; do
		n=$((n + 1))
		if [ $n -ge 100 ] || ! kill -0 $lab 2>/dev/null; then
			cat "$dir/log"
			exit 1
		fi
		sleep 0.1
	done
	set -a
	# shellcheck source=/dev/null
	. "$dir/env"
	set +a
}

# compare runs lines of a table: a regular expression (with ! before it, that of a refusal), a call and its source. Each call is
# run by a command, whose exit status for a refusal is given.
compare() {
	while IFS=$tab read -r pattern call from; do
		case $pattern in '' | '#'*) continue ;; esac
		calls=$((calls + 1)) result=met
		want=0
		case $pattern in '!'*) want=$2 pattern=${pattern#!} ;; esac
		rc=0
		$1 "$call" >"$dir/answer" 2>&1 </dev/null || rc=$?
		[ "$rc" -eq "$want" ] || result="exit status $rc"
		if ! grep -Eq -- "$pattern" "$dir/answer"; then result="not as expected"; fi
		if [ "$result" != met ]; then
			missed=$((missed + 1))
			printf '%s\n\texpected %s (%s)\n' "$call" "$pattern" "$from"
			sed 's/^/\t| /' "$dir/answer" | head -20
		fi
		printf '%s\t%s\t%s\t%s\n' "$result" "$call" "$pattern" "$from" >>"$out/table.txt"
	done
}

shell() { eval "timeout 30 $1"; }

# module runs a module of Ansible: its name, and its parameters in JSON if there are any.
module() {
	params=${1#"${1%% *}"}
	timeout 60 ansible localhost -o -m "community.vmware.${1%% *}" -a "${params# }"
}

GOVMOMI_HOME=$dir
GOVC_PERSIST_SESSION=true
export GOVMOMI_HOME GOVC_PERSIST_SESSION

calls=0 missed=0 tab=$(printf '\t')
: >"$out/table.txt"
start
if /usr/bin/python3 -W ignore -c 'import pyVmomi' 2>/dev/null; then
	timeout 120 /usr/bin/python3 -W ignore "$here/foreign.py" >>"$out/table.txt" || missed=1
else
	echo "pyVmomi: not installed (apt-get install python3-pyvmomi), left out"
fi
compare shell 1 <"$here/foreign.txt"
govc=$calls
echo "govc: $govc calls"
if command -v ansible >/dev/null && /usr/bin/python3 -c 'import pyVmomi' 2>/dev/null; then
	start
	address=${GOVC_URL#https://}
	address=${address%%/*}
	mkdir "$dir/python"
	cp "$here/foreign_json.py" "$dir/python/sitecustomize.py"
	VMWARE_HOST=${address%:*} VMWARE_PORT=${address##*:} VMWARE_USER=$GOVC_USERNAME VMWARE_PASSWORD=$GOVC_PASSWORD
	SSL_CERT_FILE=$GOVC_TLS_CA_CERTS PYTHONPATH=$dir/python ANSIBLE_HOME=$dir/ansible ANSIBLE_PYTHON_INTERPRETER=/usr/bin/python3
	ANSIBLE_LOCALHOST_WARNING=False ANSIBLE_INVENTORY_UNPARSED_WARNING=False
	export VMWARE_HOST VMWARE_PORT VMWARE_USER VMWARE_PASSWORD SSL_CERT_FILE PYTHONPATH ANSIBLE_HOME ANSIBLE_PYTHON_INTERPRETER \
		ANSIBLE_LOCALHOST_WARNING ANSIBLE_INVENTORY_UNPARSED_WARNING
	compare module 2 <"$here/ansible.txt"
	echo "Ansible: $((calls - govc)) calls"
else
	echo "Ansible: not installed (apt-get install ansible python3-pyvmomi), left out"
fi
echo "of all clients $(grep -vc '^met' "$out/table.txt" || :) answers not as expected"
[ $missed -eq 0 ] && [ $govc -ge 80 ]
