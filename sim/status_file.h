/* SPDX-License-Identifier: BSD-3-Clause */
/* The file in which a process tells of itself while it runs. It belongs to one process at a time. */
#ifndef NDSIM_STATUS_FILE_H
#define NDSIM_STATUS_FILE_H

#include <stdbool.h>
#include <stdio.h>

struct ndsim_status_file {
    const char *path;
    char *fresh; /* under which name it is written */
    FILE *file;  /* locked as long as it is open; NULL: there is none */
    bool published;
};

/*
 * Begins to write to `file->file`. False, with a message, if the file cannot be written, is no file in the narrow sense, or
 * belongs to another process that still runs; one that was killed left a file that is replaced.
 */
bool ndsim_status_file_begin(struct ndsim_status_file *file, const char *path);

/* From here on it is to be found, whole. False, with a message, if it could not be written. */
bool ndsim_status_file_publish(struct ndsim_status_file *file);

/* Removes it. One that was not begun is ignored. */
void ndsim_status_file_end(struct ndsim_status_file *file);

#endif
