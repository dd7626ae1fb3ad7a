#!/bin/sh
# A copy of a hub in files, taken while it runs, into a new folder under $BACKUPS named by the moment. The master key is not in it.
#   DATA=/srv/cloister BACKUPS=/backup/cloister KEEP=30 ./backup.sh
set -eu
: "${DATA:?the hub's folder}" "${BACKUPS:?where backups go}"
folder="$BACKUPS/$(date -u +%Y-%m-%dT%H%M%SZ)"
umask 077
mkdir -p "$BACKUPS"
cloister audit-trail verify --data "$DATA"
cloister hub backup "$folder" --data "$DATA"
ls -1d "$BACKUPS"/20*Z | sort -r | tail -n +"$((${KEEP:-30} + 1))" | while read -r old; do rm -r "$old"; done
echo "$folder"
