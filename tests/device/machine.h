/* SPDX-License-Identifier: BSD-3-Clause */
/* A QEMU process under test: started, spoken to by the qtest protocol and a monitor, and always ended. */
#ifndef NETDAM_TEST_MACHINE_H
#define NETDAM_TEST_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MACHINE_LINE 4096

/* Where the test images are, and the firmware. */
#ifndef NETDAM_TEST_IMAGES
#define NETDAM_TEST_IMAGES "build/tests/device"
#endif
#ifndef NETDAM_TEST_FIRMWARE
#define NETDAM_TEST_FIRMWARE "build/firmware/netdam-fw.so"
#endif

/* A stream that is read line by line. */
struct machine_stream {
    int fd;
    size_t fill;
    char buffer[MACHINE_LINE];
};

struct machine {
    pid_t pid;
    char directory[64]; /* of its own, removed at the end */
    struct machine_stream qtest;
    struct machine_stream monitor;
    char memif_cards[2][8]; /* ids of those that have a memif port */
    unsigned memif_count;
    unsigned patience_ms; /* of machine_run_to_end with a process that says nothing; 0: ten seconds */
};

/* What to add to the command line that every machine has: q35 without default devices. */
#define MACHINE_ARGUMENTS_MAX 48

/*
 * Makes the machine's directory, so that arguments may name files in it. Then start it with the arguments, which end
 * with NULL. Failures fail the test; machine_stop must be called in any case.
 */
void machine_prepare(struct machine *m);
void machine_start(struct machine *m, const char *const *arguments);
void machine_stop(struct machine *m);
/* Whether the process still lives. */
bool machine_is_alive(struct machine *m);

/*
 * Starts a machine that is expected to give up; returns its exit status (-1: it did not end by itself, -2: it ended by
 * a signal) and its stderr.
 */
int machine_run_to_end(struct machine *m, const char *const *arguments, char *output, size_t output_bytes);

uint64_t machine_read(struct machine *m, uint64_t address, unsigned bytes);
void machine_write(struct machine *m, uint64_t address, unsigned bytes, uint64_t value);
uint32_t machine_in(struct machine *m, uint16_t port, unsigned bytes);
void machine_out(struct machine *m, uint16_t port, unsigned bytes, uint32_t value);
/* Lets the virtual clock, which otherwise stands still, go on; threads of cards have had their turn when it returns. */
void machine_step(struct machine *m, uint64_t ns);

/* A QMP command, a line of JSON. Without a place for the answer an error fails the test. */
void machine_monitor(struct machine *m, char answer[MACHINE_LINE], const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/*
 * The wire of a card whose id is nd0 or nd1, as properties of -device: a netdev w0 or w1; or, in a program whose name
 * ends in -memif, an end of a memif link that lies in the directory of machine `place`. Newly allocated. _json: the
 * same again, for device_add.
 */
char *machine_wire(struct machine *m, const struct machine *place, unsigned end);
char *machine_wire_json(const struct machine *place, unsigned end);
/* Of a card whose id is nd and that nobody is connected to: "", or in a -memif program ",memif=...". */
char *machine_wire_alone(struct machine *m);

/* A property as a number. */
uint64_t machine_property(struct machine *m, const char *path, const char *name);

/* A newly allocated text, for free. */
char *machine_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
