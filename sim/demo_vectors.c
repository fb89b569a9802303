/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the float32 vectors of the demonstration, and checks a sum of them element by element, independently. */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_USAGE = 2 };

static int fail(const char *path, const char *why)
{
    fprintf(stderr, "demo-vectors: %s: %s\n", path, why);
    return EXIT_FAILURE;
}

/* Fractions of both signs and many magnitudes: sums of two round, so that a wrong order or width would show. */
static float element(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)((int32_t)*state >> 8) / (float)(1u << (*state >> 4 & 15));
}

static int make(const char *path, uint32_t seed, unsigned long count)
{
    FILE *file = fopen(path, "wb");
    unsigned long i;

    if (file == NULL) {
        return fail(path, strerror(errno));
    }
    for (i = 0; i < count; i++) {
        float value = element(&seed);

        if (fwrite(&value, sizeof(value), 1, file) != 1) {
            break;
        }
    }
    if (fclose(file) != 0 || i != count) {
        return fail(path, "cannot be written");
    }
    return EXIT_SUCCESS;
}

static bool next(FILE *file, float *value)
{
    return fread(value, sizeof(*value), 1, file) == 1;
}

static int check(FILE *const files[3], const char *const *paths)
{
    unsigned long count = 0;
    float value[3];

    while (next(files[0], &value[0])) {
        float sum;

        if (!next(files[1], &value[1]) || !next(files[2], &value[2])) {
            return fail(paths[2], "too short");
        }
        sum = value[0] + value[1];
        if (memcmp(&sum, &value[2], sizeof(sum)) != 0) {
            fprintf(stderr, "demo-vectors: element %lu: %.9g + %.9g is %.9g, not %.9g\n", count, (double)value[0],
                    (double)value[1], (double)sum, (double)value[2]);
            return EXIT_FAILURE;
        }
        count++;
    }
    if (count == 0 || next(files[2], &value[2])) {
        return fail(paths[2], "of another length");
    }
    printf("%lu elements, each the float32 sum of the two\n", count);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "make") == 0) {
        unsigned long count = strtoul(argv[2], NULL, 10);

        return make(argv[3], 1, count) != EXIT_SUCCESS ? EXIT_FAILURE : make(argv[4], 2, count);
    }
    if (argc == 5 && strcmp(argv[1], "check") == 0) {
        FILE *files[3];
        int result = EXIT_SUCCESS;
        int opened;

        for (opened = 0; opened < 3; opened++) {
            files[opened] = fopen(argv[2 + opened], "rb");
            if (files[opened] == NULL) {
                result = fail(argv[2 + opened], strerror(errno));
                break;
            }
        }
        if (result == EXIT_SUCCESS) {
            result = check(files, (const char *const *)(argv + 2));
        }
        while (opened > 0) {
            fclose(files[--opened]);
        }
        return result;
    }
    fputs("usage: demo-vectors make COUNT A B | check A B SUM\n", stderr);
    return EXIT_USAGE;
}
