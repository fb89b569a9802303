/* SPDX-License-Identifier: BSD-3-Clause */
/* A netdamd over a soft device, processes that are its clients, and one that speaks its protocol by hand. */
#ifndef NETDAMD_RIG_H
#define NETDAMD_RIG_H

#include "test.h"

#include <stdbool.h>
#include <sys/types.h>

#include "broker.h"
#include "user.h"

#define SOON_SECONDS 120

struct rig {
    pid_t pid;
    char directory[64];
    char socket[96];
    char device[112]; /* for netdam_open() */
    char log[96];     /* what netdamd has said */
};

/* A directory for the socket, without netdamd; and everything away again. */
void rig_open(struct rig *rig);
void rig_close(struct rig *rig);

/* Starts netdamd with these options (up to a NULL) besides device and socket, and waits until it is ready. */
void rig_start(struct rig *rig, const char *const *options);

/* Sends a signal and waits for the end; the exit status, or -signal. */
int rig_end(struct rig *rig, int number);

/* Runs a program of the build to its end: its exit status; both its outputs, as far as they fit, in `text`. */
int rig_run(const char *name, const char *const *arguments, char *text, size_t text_bytes);

/* Whether netdamd has said this; or will soon. */
bool rig_said(const struct rig *rig, const char *text);
bool rig_says(const struct rig *rig, const char *text);

/* Waits until so many clients hold something or at least could; false if that does not happen soon. */
bool rig_wait_clients(struct netdam_device *observer, int count);

/* Runs `body` in a process that dies with this one; its result is the exit status. */
pid_t rig_fork(int (*body)(void *argument), void *argument);

/* Waits for a child: the exit status, or -signal. */
int rig_wait(pid_t pid);

/* By hand. The descriptor of a new connection; -1 if there is none. */
int raw_connect(const struct rig *rig);
bool raw_send(int fd, const void *bytes, size_t count);
bool raw_request(int fd, unsigned type, const uint64_t *values, unsigned count);
/* False: the connection has ended. fds may be NULL; then descriptors are closed. */
bool raw_reply(int fd, struct ndlib_broker_reply *reply, int *fds);
/* Request and reply; the reply's error, or -ENODEV if the connection has ended. */
int raw_ask(int fd, unsigned type, const uint64_t *values, unsigned count, struct ndlib_broker_reply *reply);
/* Connected and greeted. */
int raw_open(const struct rig *rig, uint64_t flags, struct ndlib_broker_reply *reply, int *fds);
/* An administration command; the device's answer. */
uint32_t raw_admin(int fd, uint64_t command, const uint64_t *arguments, unsigned count,
                   struct ndlib_broker_reply *reply);
/* Whether the other end hangs up soon, whatever it says before; or says nothing before. */
bool raw_ends(int fd);
bool raw_ends_mute(int fd);

#endif
