/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Allreduce of float32 as the peer of the device's all-reduce: every rank has a vector and ends with the sum in a
 * vector of its own. Prints a line for each size: bytes, and the median of milliseconds (of the slowest rank).
 */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>

#define TIMES_MOST 1000

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void measure(size_t bytes, int times, int rank, int ranks)
{
    int count = (int)(bytes / sizeof(float));
    int sum = ranks * (ranks + 1) / 2;
    float *from = malloc(bytes), *to = malloc(bytes);
    double slowest[TIMES_MOST];

    if (from == NULL || to == NULL) {
        fprintf(stderr, "mpi_allreduce: out of memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
        return;
    }
    for (int i = 0; i < count; i++) {
        from[i] = (float)(rank + 1);
        to[i] = 0;
    }
    /* The first one is not counted: it touches what has to be touched. */
    for (int n = -1; n < times; n++) {
        double start, took, most;

        MPI_Barrier(MPI_COMM_WORLD);
        start = MPI_Wtime();
        MPI_Allreduce(from, to, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        took = MPI_Wtime() - start;
        MPI_Reduce(&took, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        if (rank == 0 && n >= 0) {
            slowest[n] = 1e3 * most;
        }
    }
    for (int i = 0; i < count; i++) {
        if (to[i] != (float)sum) {
            fprintf(stderr, "mpi_allreduce: element %d is %g\n", i, (double)to[i]);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    if (rank == 0) {
        qsort(slowest, (size_t)times, sizeof(slowest[0]), ascending);
        printf("%zu %.6f\n", bytes, slowest[times / 2]);
        fflush(stdout);
    }
    free(from);
    free(to);
}

/* Arguments: repetitions of all sizes, then sizes in bytes; small sizes are repeated more often, for their median. */
int main(int argc, char **argv)
{
    int rank, ranks, times = argc > 1 ? atoi(argv[1]) : 1;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 2; i < argc; i++) {
        size_t bytes = strtoull(argv[i], NULL, 0);
        int more = bytes < (1u << 16) ? 200 : bytes < (1u << 22) ? 20 : 1;

        measure(bytes, times * more < TIMES_MOST ? times * more : TIMES_MOST, rank, ranks);
    }
    MPI_Finalize();
    return 0;
}
