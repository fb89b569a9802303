/* SPDX-License-Identifier: BSD-3-Clause */
/* The registers of the test image: what its device does on command, and what it has seen. */
#ifndef NETDAM_TEST_IMAGE_H
#define NETDAM_TEST_IMAGE_H

#include "netdam/regs.h"

#define IMAGE_HEADER_BYTES 14

/* Raised by stop. */
#define IMAGE_STOP_VECTOR 7

enum image_register {
    IMAGE_STARTS = 0x3000,        /* how often this copy of the image was started */
    IMAGE_RUNS = 0x3008,          /* calls of run */
    IMAGE_SLEEPS = 0x3010,        /* calls of prepare_sleep */
    IMAGE_RECEIVED = 0x3018,      /* frames */
    IMAGE_LAST_RECEIVED = 0x3020, /* sequence number of the last one */
    IMAGE_FRAME_BYTES = 0x3028,   /* write: size of frames to send */
    IMAGE_SEND = 0x3030,          /* write: send so many frames; read: left to send */
    IMAGE_FULL = 0x3038,          /* how often the port was full */
    IMAGE_ALARM = 0x3040,         /* write: a timer, ns from now; read: how many have run out */
    IMAGE_RAISE = 0x3048,         /* write: raise this vector */
    IMAGE_LOG = 0x3050,           /* write: log at this level */
    IMAGE_OFFSET = 0x3058,        /* last access to any other register */
    IMAGE_BYTES = 0x3060,
};

#endif
