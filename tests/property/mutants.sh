#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Firmware that is broken in one place at a time: each must be noticed.
exec "${PYTHON:-/usr/bin/python3}" tests/property/mutants.py
