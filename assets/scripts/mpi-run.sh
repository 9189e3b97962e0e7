#!/bin/sh
# Runs mpirun of this guest over several guests: mpi-run.sh DIR BIN SECONDS WORD... The reader of its output starts the daemons of
# the other guests: for each there is a line "@launch ADDRESS COMMAND", so that no guest needs a key of another. DIR is the one of
# mpi-prepare.sh; while mpirun runs, DIR/running contains the process to end.
dir=$1 bin=$2 limit=$3
shift 3
PATH=$bin:$PATH
export PATH
rm -f -- "$dir/asks"
mkfifo -m 600 "$dir/asks" || exit 1
exec 3<>"$dir/asks"
cat <&3 &
asks=$!
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm_rsh_agent=$dir/agent PRTE_MCA_plm_ssh_agent=$dir/agent \
	timeout -k 5 "$limit" mpirun "$@" </dev/null 3>&- &
running=$!
echo $running >"$dir/running"
wait $running
ended=$?
rm -f -- "$dir/running"
kill $asks 2>/dev/null
exit $ended
