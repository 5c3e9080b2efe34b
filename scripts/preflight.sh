#!/bin/sh
# Says what this machine lacks, in one exact command each, before anything is downloaded.
set -eu
python=$1
fail() { printf 'torchyard: %s\n' "$1" >&2; exit 1; }

command -v "$python" >/dev/null 2>&1 || fail "no $python here. Install it with: apt-get install python3 python3-venv"
"$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2])' ||
    fail "$("$python" --version) is too old: Python 3.11 or 3.12 is needed. Name another with: make PYTHON=/path/to/python3.12"
"$python" -c 'import ensurepip, venv' 2>/dev/null ||
    fail "$python has no venv module. Install it with: apt-get install python3-venv"
if ! command -v redis-server >/dev/null 2>&1; then
    "$python" -c 'import platform, sys; sys.exit(not (platform.machine() == "x86_64" and sys.version_info[:2] < (3, 13)))' ||
        fail "no bundled Redis for this machine and Python. Install one with: apt-get install redis-server"
fi
free=$(df -Pk . | awk 'NR == 2 { print int($4 / 1048576) }')
[ -d .venv ] || [ "$free" -ge 8 ] || fail "only $free GiB are free here; the environment needs 8. Free some, or clone elsewhere."
