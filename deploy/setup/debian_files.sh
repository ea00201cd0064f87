#!/bin/sh
# Takes files out of a Debian package without installing it, so that no root is needed and nothing else comes along.
# usage: debian_files.sh PACKAGE FOLDER_IN_PACKAGE DESTINATION
set -eu
package=$1 inside=$2 destination=$3

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
chmod 755 "$scratch" # apt drops its privileges to download

fetch() { (cd "$scratch" && apt-get download -qq "$package" 2>/dev/null); }
refresh() {
    if [ "$(id -u)" = 0 ]; then apt-get update -qq; else sudo -n apt-get update -qq 2>/dev/null; fi
}

command -v apt-get >/dev/null || { echo "no apt-get here: put the files of $package into $destination yourself" >&2; exit 1; }
fetch || { refresh && fetch; } || {
    echo "apt-get download $package failed: this machine must be online and know its packages (as root: apt-get update)" >&2
    exit 1
}
dpkg-deb -x "$scratch"/*.deb "$scratch/files"
mkdir -p "$destination"
# Whole or not at all: make takes a file that is there for finished.
for file in "$scratch/files/$inside"/*; do
    cp "$file" "$destination/.part"
    mv "$destination/.part" "$destination/${file##*/}"
done
