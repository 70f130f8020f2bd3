#!/usr/bin/env sh
# What the tests of Postgres and Spark need besides Python: a Postgres server (started by the tests themselves, on
# loopback, in a folder of its own) and Java 17 or newer. Installed by apt where that is possible; where it is not, the
# reason is told, and those tests are skipped with it.
set -eu

missing=""
command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing="postgresql"
command -v java >/dev/null || missing="$missing default-jre-headless"
[ -z "$missing" ] && exit 0

if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "not installed:$missing (that takes root and apt); the tests that need it will be skipped" >&2
    exit 0
fi
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086
apt-get update -q && apt-get install -q -y --no-install-recommends $missing \
    || echo "apt could not install:$missing; the tests that need it will be skipped" >&2
