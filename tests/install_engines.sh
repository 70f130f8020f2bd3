#!/usr/bin/env sh
# What the tests need besides Python: a Postgres server (started by the tests themselves, on loopback, in a folder of its
# own), Java 17 or newer for Spark; a C compiler and strace for faults at file-system calls; Chromium for the pages of
# reports and explorers; LibreOffice Calc for workbooks. Installed by apt where that is possible; where it is not, the
# reason is told, and those tests are skipped with it.
set -eu

missing=""
command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing="postgresql"
command -v java >/dev/null || missing="$missing default-jre-headless"
command -v cc >/dev/null || command -v gcc >/dev/null || missing="$missing gcc libc6-dev"
command -v strace >/dev/null || missing="$missing strace"
command -v chromium >/dev/null || missing="$missing chromium"
command -v soffice >/dev/null || missing="$missing libreoffice-calc"
[ -z "$missing" ] && exit 0

if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "not installed:$missing (that takes root and apt); the tests that need it will be skipped" >&2
    exit 0
fi
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086
apt-get update -q && apt-get install -q -y --no-install-recommends $missing \
    || echo "apt could not install:$missing; the tests that need it will be skipped" >&2
