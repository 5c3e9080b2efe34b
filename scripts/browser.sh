#!/bin/sh
# Finds a Chromium for the browser tests: on PATH, else Debian's package (as root), else Playwright's own download.
# Where none can be had it says so and succeeds: the browser tests themselves then fail with the same words.
set -u
bin=$1
for name in chromium chromium-browser google-chrome; do
    command -v "$name" >/dev/null 2>&1 && exit 0
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "torchyard: installing Debian's chromium for the browser tests"
    { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends chromium fonts-dejavu-core; } >/dev/null 2>&1 &&
        exit 0
fi
echo "torchyard: fetching Playwright's Chromium for the browser tests"
"$bin/playwright" install chromium >/dev/null 2>&1 && exit 0
echo "torchyard: no Chromium could be had; the browser tests will fail. Install one with: apt-get install chromium" >&2
