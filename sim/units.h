/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers with units, as command lines and topology files write them. */
#ifndef NDSIM_UNITS_H
#define NDSIM_UNITS_H

#include <stdbool.h>
#include <stdint.h>

/* All return false, and leave the result alone, if the text is not wholly such a number or does not fit. */

/* "4096", "4K", "64M", "1G", "1T": bytes; a decimal number and at most one suffix, in powers of 1024. */
bool ndsim_size_parse(const char *text, uint64_t *bytes);

/* "64000", "100M", "2.5G": bits per second, in powers of 1000. */
bool ndsim_rate_parse(const char *text, uint64_t *bits_per_s);

/* "0", "500ns", "10us", "2.5ms", "1s": without a unit only 0. */
bool ndsim_time_parse(const char *text, uint64_t *ns);

/* "0", "1%", "0.1%", "20ppm": at most 100%. */
bool ndsim_chance_parse(const char *text, uint32_t *parts_per_million);

#endif
