#!/bin/sh
# A new master key, and everything that the old one wrapped wrapped again. The hub is stopped. The old key is kept until you have seen the
# hub open with the new one; then destroy it, wherever it is. Interrupted, run it again: it goes on with the new key that it made.
#   DATA=/srv/cloister ./rotate-key.sh
set -eu
: "${DATA:?the hub's folder}"
umask 077
[ -s "$DATA/master.key.new" ] || cloister hub key > "$DATA/master.key.new"
sync
if [ -e "$DATA/master.key" ]; then
  cloister hub rotate-key "$DATA/master.key.new" --data "$DATA"
  mv "$DATA/master.key" "$DATA/master.key.old"
fi
mv "$DATA/master.key.new" "$DATA/master.key"
cloister audit-trail verify --data "$DATA"
