/*
 * Measures MPI between guests where the OSU micro-benchmarks are not installed: latency, bandwidth and all-reduce, in the
 * layout of their output. mpi latency|bandwidth|allreduce LARGEST ROUNDS
 *
 * latency: half a round trip between ranks 0 and 1. bandwidth: a window of messages from rank 0 to rank 1, then one answer, for a
 * second or ROUNDS times.
 * allreduce: the mean over all ranks of the time of one MPI_Allreduce of floats.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 64, FEW = 16, LARGE = 65536 };

static void die(const char *why)
{
	fprintf(stderr, "mpi: %s\n", why);
	MPI_Abort(MPI_COMM_WORLD, 2);
	exit(2);
}

static double latency(int rank, char *buf, int size, int rounds)
{
	double began = 0;
	for (int i = -(rounds / 10 + 1); i < rounds; i++) {
		if (i == 0) {
			MPI_Barrier(MPI_COMM_WORLD);
			began = MPI_Wtime();
		}
		if (rank == 0) {
			MPI_Send(buf, size, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
			MPI_Recv(buf, size, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		} else if (rank == 1) {
			MPI_Recv(buf, size, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Send(buf, size, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
		}
	}
	return (MPI_Wtime() - began) * 1e6 / rounds / 2;
}

static double bandwidth(int rank, char *buf, int size, int rounds)
{
	MPI_Request all[WINDOW];
	int window = size < LARGE ? WINDOW : FEW, done = -1, on = 1;
	double began = 0, took = 0;
	while (on) {
		if (done == 0)
			began = MPI_Wtime();
		if (rank == 0) {
			for (int k = 0; k < window; k++)
				MPI_Isend(buf, size, MPI_CHAR, 1, 2, MPI_COMM_WORLD, &all[k]);
			MPI_Waitall(window, all, MPI_STATUSES_IGNORE);
			MPI_Recv(buf, 4, MPI_CHAR, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		} else if (rank == 1) {
			for (int k = 0; k < window; k++)
				MPI_Irecv(buf, size, MPI_CHAR, 0, 2, MPI_COMM_WORLD, &all[k]);
			MPI_Waitall(window, all, MPI_STATUSES_IGNORE);
			MPI_Send(buf, 4, MPI_CHAR, 0, 3, MPI_COMM_WORLD);
		}
		done++;
		took = MPI_Wtime() - began;
		on = done < 1 || (done < rounds && took < 1);
		MPI_Bcast(&on, 1, MPI_INT, 0, MPI_COMM_WORLD);
	}
	return (double)size * window * done / took / 1e6;
}

static double allreduce(int ranks, char *from, char *to, int size, int rounds)
{
	double began = 0, mine, sum;
	for (int i = -(rounds / 10 + 1); i < rounds; i++) {
		if (i == 0) {
			MPI_Barrier(MPI_COMM_WORLD);
			began = MPI_Wtime();
		}
		MPI_Allreduce(from, to, size / (int)sizeof(float), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
	}
	mine = (MPI_Wtime() - began) * 1e6 / rounds;
	MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < size / (int)sizeof(float); i++)
		if (((float *)to)[i] != ranks)
			die("an all-reduce gave a wrong sum");
	return sum / ranks;
}

int main(int argc, char **argv)
{
	int rank, ranks;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc != 4)
		die("use: mpi latency|bandwidth|allreduce LARGEST ROUNDS");
	int largest = atoi(argv[2]), rounds = atoi(argv[3]);
	if (largest < 4 || largest > 1 << 26 || rounds < 1 || ranks < 2)
		die("LARGEST is 4 to 67108864, ROUNDS at least 1, and there are at least two ranks");
	char *buf = calloc(1, largest), *to = calloc(1, largest);
	if (!buf || !to)
		die("out of memory");
	for (int i = 0; i < largest / (int)sizeof(float); i++)
		((float *)buf)[i] = 1;
	int what = !strcmp(argv[1], "latency") ? 0 : !strcmp(argv[1], "bandwidth") ? 1 : !strcmp(argv[1], "allreduce") ? 2 : 3;
	const char *column[] = {"Latency (us)", "Bandwidth (MB/s)", "Avg Latency(us)"};
	if (what == 3)
		die("latency, bandwidth or allreduce");
	if (rank == 0)
		printf("# rdma-setup MPI %s, %d ranks\n# Size          %s\n", argv[1], ranks, column[what]);
	for (int size = what == 2 ? 4 : 1; size <= largest; size *= 4) {
		double v = what == 0 ? latency(rank, buf, size, rounds) : what == 1 ? bandwidth(rank, buf, size, rounds) : allreduce(ranks, buf, to, size, rounds);
		if (rank == 0) {
			printf("%-15d %.2f\n", size, v);
			fflush(stdout);
		}
	}
	free(buf);
	free(to);
	MPI_Finalize();
	return 0;
}
