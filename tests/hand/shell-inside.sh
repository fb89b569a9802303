#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs in the guests of `make guest` and `make pair`: an interactive shell on the first serial port.
#   shell-inside.sh NAME OTHER-ADDRESS ROWS COLUMNS TERM
stty sane rows "$3" cols "$4" erase '^?'
export TERM="$5" PS1="$1# " ENV=/tmp/profile NAME="$1" OTHER="$2"
cat >/tmp/profile <<'END'
alias poweroff=exit
END
echo
echo "Guest $NAME. The card: netdam-info. The machine at the other end of the wire: $OTHER. To end: exit."
exec sh -i
