/* SPDX-License-Identifier: BSD-3-Clause */
/* Wrong properties: the machine does not start, and one line says why. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "machine.h"

/* @directory@ stands for the machine's own directory, @images@ for where the test images are. */
#define GOOD "firmware=@images@/image.so"
#define IP   "ip=10.0.0.1/24"
#define MEM  "memory-backend-ram,id=m,size=64K"

struct wrong {
    const char *name;
    const char *object;
    const char *device;
    const char *says;
};

static const struct wrong wrongs[] = {
    {"memdev missing", MEM, GOOD "," IP, "memdev=ID of a memory-backend object is required"},
    {"memdev unknown", MEM, "memdev=other," GOOD "," IP, "'other' not found"},
    {"memdev of another kind", "rng-builtin,id=m", "memdev=m," GOOD "," IP, "memory-backend"},
    {"memdev not a power of two", "memory-backend-ram,id=m,size=12K", "memdev=m," GOOD "," IP,
     "a power of two, at least 4096"},
    {"memdev read-only", "memory-backend-file,id=m,size=64K,share=off,readonly=on,mem-path=@directory@/zeros",
     "memdev=m," GOOD "," IP, "is read-only"},
    {"memdev in use", MEM, "memdev=m," GOOD "," IP " -device netdam,memdev=m," GOOD "," IP, "is in use already"},
    {"ip missing", MEM, "memdev=m," GOOD, "ip=ADDRESS/PREFIX or ip6=ADDRESS/PREFIX is required"},
    {"ip not an address", MEM, "memdev=m,ip=10.0.0/24," GOOD, "ip '10.0.0/24' is not an IPv4 address"},
    {"ip with a name", MEM, "memdev=m,ip=localhost," GOOD, "ip 'localhost' is not an IPv4 address"},
    {"ip prefix too long", MEM, "memdev=m,ip=10.0.0.1/33," GOOD, "ip '10.0.0.1/33' is not"},
    {"ip prefix 0", MEM, "memdev=m,ip=10.0.0.1/0," GOOD, "ip '10.0.0.1/0' is not"},
    {"ip prefix not a number", MEM, "memdev=m,ip=10.0.0.1/," GOOD, "ip '10.0.0.1/' is not"},
    {"ip multicast", MEM, "memdev=m,ip=224.0.0.1/24," GOOD, "ip '224.0.0.1/24' is not"},
    {"ip6 not an address", MEM, "memdev=m,ip6=10.0.0.1," GOOD, "ip6 '10.0.0.1' is not an IPv6 address"},
    {"ip6 prefix too long", MEM, "memdev=m,ip6=fd00::1/129," GOOD, "ip6 'fd00::1/129' is not"},
    {"ip6 prefix not a number", MEM, "memdev=m,ip6=fd00::1/," GOOD, "ip6 'fd00::1/' is not"},
    {"ip6 multicast", MEM, "memdev=m,ip6=ff02::1/64," GOOD, "ip6 'ff02::1/64' is not"},
    {"ip6 none", MEM, "memdev=m,ip6=::/64," GOOD, "ip6 '::/64' is not"},
    {"neighbour without MAC", MEM, "memdev=m,neighbours=10.0.0.2," IP "," GOOD, "'10.0.0.2' is not ADDRESS=MAC"},
    {"neighbour with half a MAC", MEM, "memdev=m,neighbours='10.0.0.2=02:00:00'," IP "," GOOD, "is not ADDRESS=MAC"},
    {"neighbour with more than a MAC", MEM, "memdev=m,neighbours=10.0.0.2=02:00:00:00:00:02:03," IP "," GOOD,
     "is not ADDRESS=MAC"},
    {"neighbour with a name", MEM, "memdev=m,neighbours=a=02:00:00:00:00:02," IP "," GOOD, "is not ADDRESS=MAC"},
    {"neighbour that is nothing", MEM, "memdev=m,neighbours=10.0.0.2=02:00:00:00:00:02;," IP "," GOOD,
     "'' is not ADDRESS=MAC"},
    {"neighbour of a family that the card has not", MEM,
     "memdev=m,neighbours=10.0.0.2=02:00:00:00:00:02;fd00::2=02:00:00:00:00:02," IP ",firmware=" NETDAM_TEST_FIRMWARE,
     "the firmware refuses number 2 of"},
    {"neighbour with the MAC of a group", MEM,
     "memdev=m,neighbours=10.0.0.2=03:00:00:00:00:02," IP ",firmware=" NETDAM_TEST_FIRMWARE,
     "the firmware refuses number 1 of"},
    {"gateway not an address", MEM, "memdev=m,gateway=router," IP "," GOOD, "gateway 'router' is not an IPv4 address"},
    {"forward without a length", MEM, "memdev=m,forward=10.0.0.0," IP "," GOOD, "'10.0.0.0' is not NETWORK/BITS"},
    {"forward too long", MEM, "memdev=m,forward=10.0.0.0/33," IP "," GOOD, "'10.0.0.0/33' is not NETWORK/BITS"},
    {"forward to a name", MEM, "memdev=m,forward=lan/8," IP "," GOOD, "'lan/8' is not NETWORK/BITS"},
    {"forward to five networks", MEM,
     "memdev=m,forward=10.1.0.0/16;10.2.0.0/16;10.3.0.0/16;fd01::/16;fd02::/16," IP "," GOOD,
     "'fd02::/16' is not NETWORK/BITS, such as 10.1.0.0/16, or one too many (4)"},
    {"port 0", MEM, "memdev=m,port=0," IP "," GOOD, "port must not be 0"},
    {"mac of a group", MEM, "memdev=m,mac=01:00:00:00:00:01," IP "," GOOD, "mac is a group address"},
    {"mtu too small", MEM, "memdev=m,mtu=1499," IP "," GOOD, "mtu must be from 1500 to 9000"},
    {"mtu too large", MEM, "memdev=m,mtu=9001," IP "," GOOD, "mtu must be from 1500 to 9000"},
    {"no queue pairs", MEM, "memdev=m,queue-pairs=0," IP "," GOOD, "queue-pairs must be from 1 to 64"},
    {"too many queue pairs", MEM, "memdev=m,queue-pairs=65," IP "," GOOD, "queue-pairs must be from 1 to 64"},
    {"too many vectors", MEM, "memdev=m,vectors=2049," IP "," GOOD, "vectors must be from 0 to 2048"},
    {"netdev unknown", MEM, "memdev=m,netdev=wire," IP "," GOOD, "wire"},
    {"two wires", MEM, "memdev=m,netdev=w,memif=@directory@/link," IP "," GOOD " -netdev hubport,id=w,hubid=0",
     "memif and netdev are two wires; the card has one port"},
    {"role without memif", MEM, "memdev=m,role=server," IP "," GOOD, "memif=PATH is missing"},
    {"role unknown", MEM, "memdev=m,memif=@directory@/link,role=master," IP "," GOOD,
     "role 'master' is neither server nor client"},
    {"memif without a path", MEM, "memdev=m,memif=," IP "," GOOD, "memif '': a path for a unix socket"},
    {"memif secret too long", MEM,
     "memdev=m,memif=@directory@/link,memif-secret=0123456789012345678901234," IP "," GOOD,
     "a secret of at most 24 characters"},
    {"memif server where no socket can be", MEM, "memdev=m,memif=@directory@/none/link,role=server," IP "," GOOD,
     "No such file or directory"},
    {"memif server at a file", MEM, "memdev=m,memif=@directory@/empty,role=server," IP "," GOOD,
     "Address already in use"},
    {"firmware missing", MEM, "memdev=m," IP, "firmware=PATH of a firmware image is required"},
    {"firmware not there", MEM, "memdev=m," IP ",firmware=@directory@/none", "No such file or directory"},
    {"firmware a directory", MEM, "memdev=m," IP ",firmware=@directory@", "is not a file"},
    {"firmware a FIFO", MEM, "memdev=m," IP ",firmware=@directory@/fifo", "is not a file"},
    {"firmware empty", MEM, "memdev=m," IP ",firmware=@directory@/empty", "impossible size, 0 bytes"},
    {"firmware a text", MEM, "memdev=m," IP ",firmware=@directory@/zeros", "is not a whole shared object"},
    {"firmware cut short", MEM, "memdev=m," IP ",firmware=@directory@/cut.so", "is not a whole shared object"},
    {"firmware a program", MEM, "memdev=m," IP ",firmware=/bin/true", "cannot load firmware"},
    {"firmware of another ABI version", MEM, "memdev=m," IP ",firmware=@images@/image-abi.so",
     "has ABI version 99, this device needs "},
    {"firmware with another table", MEM, "memdev=m," IP ",firmware=@images@/image-ops.so",
     "operations table of 8 bytes"},
    {"firmware without an entry", MEM, "memdev=m," IP ",firmware=@images@/image-entry.so",
     "does not export netdam_fw_entry"},
    {"firmware refuses", MEM, "memdev=m," IP ",firmware=@images@/image-state.so",
     "refuses the configuration: the test image refuses everything"},
    {"firmware too hungry", MEM, "memdev=m," IP ",firmware=@images@/image-hungry.so", "no memory for the"},
};

static char *replace(char *text, const char *what, const char *by)
{
    char *at;

    while ((at = strstr(text, what)) != NULL) {
        char *longer = machine_text("%.*s%s%s", (int)(at - text), text, by, at + strlen(what));

        free(text);
        text = longer;
    }
    return text;
}

static const char *expand(const struct machine *m, const char *text)
{
    char *copy = strdup(text);

    copy = replace(copy, "@directory@", m->directory);
    return replace(copy, "@images@", NETDAM_TEST_IMAGES);
}

static void write_file(const char *path, const void *data, size_t bytes)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    fclose(file);
}

static void make_files(struct machine *m)
{
    static const char zeros[65536];
    static char image[1 << 20];
    FILE *file = fopen(NETDAM_TEST_IMAGES "/image.so", "rb");
    size_t bytes;

    assert_non_null(file);
    bytes = fread(image, 1, sizeof(image), file);
    fclose(file);
    assert_true(bytes > 4096 && bytes < sizeof(image));
    write_file(expand(m, "@directory@/zeros"), zeros, sizeof(zeros));
    write_file(expand(m, "@directory@/empty"), zeros, 0);
    write_file(expand(m, "@directory@/cut.so"), image, bytes - 64);
    assert_int_equal(mkfifo(expand(m, "@directory@/fifo"), 0600), 0);
}

static int teardown(void **state)
{
    machine_stop(*state);
    return 0;
}

static void one_line_says_why(void **state)
{
    static struct machine machine;
    const struct wrong *wrong = NULL;
    size_t i;
    char output[8192];

    *state = &machine;
    machine_prepare(&machine);
    make_files(&machine);
    for (i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
        const char *device, *second, *option = NULL;
        int status;

        wrong = &wrongs[i];
        device = expand(&machine, wrong->device);
        second = strstr(device, " -");
        if (second != NULL) {
            device = machine_text("%.*s", (int)(second - device), device);
            option = machine_text("%.*s", (int)strcspn(second + 1, " "), second + 1);
            second += 1 + strlen(option) + 1;
        }
        status = machine_run_to_end(&machine,
                                    (const char *const[]){"-object", expand(&machine, wrong->object), "-device",
                                                          machine_text("netdam,%s", device), option, second, NULL},
                                    output, sizeof(output));
        if (status <= 0 || strstr(output, wrong->says) == NULL || strchr(output, '\n') == NULL ||
            strchr(output, '\n')[1] != '\0') {
            fail_msg("%s: status %d, stderr: %s", wrong->name, status, output);
        }
    }
}

static void help_describes_every_property(void **state)
{
    static struct machine machine;
    static const char *const names[] = {
        "memdev",      "firmware",       "ip",         "gateway",      "port",         "mtu",     "queue-pairs",
        "payload-crc", "vectors",        "regions",    "peers",        "mac",          "netdev",  "ip6",
        "neighbours",  "scrub-on-reset", "x-timeouts", "lanes",        "lane-windows", "merge",   "forward",
        "memif",       "role",           "memif-id",   "memif-secret", "x-spins",      "x-yields"};
    char output[16384];
    size_t i;

    *state = &machine;
    machine_prepare(&machine);
    /* The help goes to stdout, which a second process takes. */
    {
        const char *qemu = getenv("NETDAM_QEMU") != NULL ? getenv("NETDAM_QEMU") : "build/qemu/qemu-system-x86_64";
        FILE *pipe = popen(machine_text("%s -device netdam,help", qemu), "r");
        size_t fill;

        assert_non_null(pipe);
        fill = fread(output, 1, sizeof(output) - 1, pipe);
        output[fill] = '\0';
        assert_int_equal(pclose(pipe), 0);
    }
    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *line = strstr(output, machine_text("\n  %s=<", names[i]));
        const char *text = line != NULL ? strstr(line + 1, " - ") : NULL;

        if (text == NULL || memchr(line + 1, '\n', (size_t)(text - line - 1)) != NULL ||
            strncmp(text, " -  (", 5) == 0) {
            fail_msg("property %s is not described", names[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(one_line_says_why, teardown),
        cmocka_unit_test_teardown(help_describes_every_property, teardown),
    };

    alarm(600);
    return cmocka_run_group_tests_name("device: errors", tests, NULL, NULL);
}
