#!/bin/sh
# Puts into ROOT what the image holds beside the bundle in ROOT/app: Node, the libraries that it links
# to, and names for the user. Runs in the build stage, where a shell is.
set -eu
root=$1
node=$(command -v node)

mkdir -p "$root/usr/local/bin" "$root/etc" "$root/tmp"
chmod 1777 "$root/tmp"
cp -L "$node" "$root/usr/local/bin/node"
ldd "$node" | awk '{ for (i = 1; i <= NF; i++) if ($i ~ /^\//) print $i }' | sort -u |
	while read -r library; do
		mkdir -p "$root$(dirname "$library")"
		cp -L "$library" "$root$library"
	done
# `grapevine` on PATH is the bundle's entry; Node looks for its chunks beside the real file.
ln -s /app/grapevine.mjs "$root/usr/local/bin/grapevine"
printf 'grapevine:x:65532:65532::/:/sbin/nologin\n' >"$root/etc/passwd"
printf 'grapevine:x:65532:\n' >"$root/etc/group"
