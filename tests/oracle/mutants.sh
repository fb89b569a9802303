#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Firmware that is broken in one place at a time: the oracle must notice each.
exec "${PYTHON:-/usr/bin/python3}" tests/oracle/mutants.py
