/* SPDX-License-Identifier: BSD-3-Clause */
/* The ALU from memory into memory, beside plain host loops over the same arrays. */
#include "bench.h"
#include "host_loops.h"

#include "ndfw.h"
#include "platform_cpu.h"

/* Long work is done in slices of about this. */
#define SLICE_BYTES 65536u

struct work {
    struct ndfw fw; /* of which only the configuration is looked at */
    uint8_t *a, *b;
    size_t bytes;
    unsigned operation, type;
    host_loop loop;
};

/* The element 1 of a type. */
static uint64_t one_of(unsigned type)
{
    switch (type) {
    case NETDAM_TYPE_F16:
        return 0x3c00;
    case NETDAM_TYPE_BF16:
        return 0x3f80;
    case NETDAM_TYPE_F32:
        return 0x3f800000;
    case NETDAM_TYPE_F64:
        return UINT64_C(0x3ff0000000000000);
    default:
        return 1;
    }
}

/* All elements are 1: however often it is repeated, no float overflows or becomes denormal. */
static void fill(const struct work *work)
{
    unsigned size = netdam_type_bytes(work->type);
    uint64_t one = one_of(work->type);
    size_t done = size;

    memcpy(work->a, &one, size);
    for (; done < work->bytes; done *= 2) {
        memcpy(work->a + done, work->a, done < work->bytes - done ? done : work->bytes - done);
    }
    memcpy(work->b, work->a, work->bytes);
}

static void run_alu(void *opaque, unsigned times)
{
    struct work *work = opaque;

    for (unsigned n = 0; n < times; n++) {
        for (size_t at = 0; at < work->bytes; at += SLICE_BYTES) {
            size_t left = work->bytes - at;

            ndfw_alu_reduce(&work->fw, work->a + at, work->b + at, left < SLICE_BYTES ? left : SLICE_BYTES,
                            work->operation, work->type);
        }
    }
}

static void run_host(void *opaque, unsigned times)
{
    struct work *work = opaque;

    for (unsigned n = 0; n < times; n++) {
        work->loop(work->a, work->b, work->bytes);
        __asm__ volatile("" : : : "memory");
    }
}

struct pair {
    double device; /* GB/s of operand */
    double host;   /* 0: none */
};

static struct pair compare(struct work *work, size_t bytes, const struct bench_plan *plan)
{
    const struct bench_side sides[] = {{NULL, run_alu, work}, {NULL, run_host, work}};
    double seconds[2] = {0, 0};
    unsigned count = work->loop != NULL ? 2 : 1;

    work->bytes = bytes;
    fill(work);
    bench_compare(sides, count, bench_times(&sides[0], plan->small_seconds), plan->rounds, seconds);
    return (struct pair){1e-9 * (double)bytes / seconds[0], count == 2 ? 1e-9 * (double)bytes / seconds[1] : 0};
}

static void print_pair(FILE *out, const char *name, size_t bytes, struct pair pair)
{
    fprintf(out, "%s{\"bytes\": %zu, \"device_gb_s\": %.3f, ", name, bytes, pair.device);
    if (pair.host != 0) {
        fprintf(out, "\"host_gb_s\": %.3f, \"ratio\": %.3f}", pair.host, pair.device / pair.host);
    } else {
        fprintf(out, "\"host_gb_s\": null, \"ratio\": null}");
    }
}

static const char *operation_name(unsigned operation)
{
    switch (operation) {
#define NAME(name, value, text)                                                                                        \
    case value:                                                                                                        \
        return #name;
        NETDAM_ALU_LIST(NAME)
#undef NAME
    default:
        return "?";
    }
}

static const char *type_name(unsigned type)
{
    switch (type) {
#define NAME(name, value, bytes, class_, text)                                                                         \
    case value:                                                                                                        \
        return #name;
        NETDAM_TYPE_LIST(NAME)
#undef NAME
    default:
        return "?";
    }
}

static void use(struct work *work, unsigned operation, unsigned type)
{
    work->operation = operation;
    work->type = type;
    work->loop = host_loop_for(operation, type);
}

static void print_table(FILE *out, struct work *work, const struct bench_plan *plan)
{
    const char *separator = "";

    fprintf(out, "\"alu\": [");
    for (unsigned type = NETDAM_TYPE_U8; type <= NETDAM_TYPE_F64; type++) {
        for (unsigned operation = NETDAM_ALU_SUM; operation <= NETDAM_ALU_SUM_SATURATING; operation++) {
            if (!ndfw_alu_executes(operation, type)) {
                continue;
            }
            use(work, operation, type);
            fprintf(out, "%s\n  {\"operation\": \"%s\", \"type\": \"%s\", ", separator, operation_name(operation),
                    type_name(type));
            print_pair(out, "\"memory\": ", plan->table_bytes, compare(work, plan->table_bytes, plan));
            print_pair(out, ", \"cache\": ", plan->small_bytes, compare(work, plan->small_bytes, plan));
            fprintf(out, "}");
            separator = ",";
        }
    }
    fprintf(out, "\n],\n");
}

void bench_alu(FILE *out, const struct bench_plan *plan)
{
    static struct work work;

    work.fw.config.cpu_features = ndfw_platform_cpu_features();
    work.a = bench_allocate(1u << 21, plan->large_bytes);
    work.b = bench_allocate(1u << 21, plan->large_bytes);
    fprintf(out, "\"cpu_features\": %llu,\n", (unsigned long long)work.fw.config.cpu_features);
    use(&work, NETDAM_ALU_SUM, NETDAM_TYPE_F32);
    print_pair(out, "\"alu_add_f32_ratio\": {\"memory\": ", plan->large_bytes, compare(&work, plan->large_bytes, plan));
    print_pair(out, ", \"cache\": ", plan->small_bytes, compare(&work, plan->small_bytes, plan));
    fprintf(out, "},\n");
    print_table(out, &work, plan);
    bench_release(work.a);
    bench_release(work.b);
}
