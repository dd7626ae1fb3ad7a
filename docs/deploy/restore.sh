#!/bin/sh
# Put a backup into the place of a hub that is gone. The hub is stopped. What is left of it is moved aside, except for the heads, which
# know what was spent after the backup, and the key and the settings, which no backup has.
#   DATA=/srv/cloister BACKUP=/backup/cloister/2026-05-04T010000Z ./restore.sh
set -eu
: "${DATA:?the hub's folder}" "${BACKUP:?the backup to put back}"
aside="$DATA.lost-$(date -u +%Y-%m-%dT%H%M%SZ)"
umask 077
mkdir -p "$DATA" "$aside"
for path in "$DATA"/hub.db* "$DATA"/ledger.db* "$DATA/vault"; do
  if [ -e "$path" ]; then mv "$path" "$aside/"; fi
done
cloister hub restore "$BACKUP" --data "$DATA"
