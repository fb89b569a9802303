/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One of the processes that share the card in a guest: works until a file appears, and says so now and then.
 * Usage: guest_client NAME STOPFILE
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "user.h"

#define AREA   (UINT64_C(1) << 20)
#define ROUNDS 50

/* Whether this process has mapped a page of registers: of sysfs's file, or of vfio's, which is all of the device's. */
static const char *find_doorbell(void)
{
    FILE *file = fopen("/proc/self/maps", "re");
    const char *found = "none";
    char line[512];

    while (file && fgets(line, sizeof(line), file)) {
        unsigned long start;
        unsigned long end;

        if (sscanf(line, "%lx-%lx", &start, &end) != 2 || end - start != NETDAM_PAGE_BYTES) {
            continue;
        }
        if (strstr(line, "/resource0")) {
            found = "sysfs";
        } else if (strstr(line, "vfio")) {
            found = "vfio";
        }
    }
    if (file) {
        fclose(file);
    }
    return found;
}

int main(int argc, char **argv)
{
    struct user user;
    int rc;

    if (argc != 3) {
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    rc = user_open(&user, "pci", AREA, 0);
    if (rc != 0) {
        printf("%s: cannot open: %s\n", argv[1], strerror(-rc));
        return 1;
    }
    printf("%s: opened %s doorbell %s interrupt %s\n", argv[1], netdam_device_name(user.device), find_doorbell(),
           netdam_queue_fd(user.queue) >= 0 ? "yes" : "no");
    while (access(argv[2], F_OK) != 0) {
        rc = user_work(&user, ROUNDS);
        if (rc != 0) {
            printf("%s: failed: %s\n", argv[1], rc > 0 ? netdam_status_name((unsigned)rc) : strerror(-rc));
            user_close(&user);
            return 1;
        }
        printf("%s: worked\n", argv[1]);
    }
    user_close(&user);
    printf("%s: done\n", argv[1]);
    return 0;
}
