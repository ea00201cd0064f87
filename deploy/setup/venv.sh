#!/bin/sh
# Makes a virtual environment with pip in it, also where Debian left ensurepip out (no python3-venv) and nobody is root.
# usage: venv.sh PYTHON DESTINATION
set -eu
python=$1 venv=$2

if "$python" -c 'import ensurepip' 2>/dev/null; then
    exec "$python" -m venv "$venv"
fi
echo "    no ensurepip here: pip comes from Debian's python3-pip-whl"
"$python" -m venv --without-pip "$venv"
wheels=$(mktemp -d)
trap 'rm -rf "$wheels"' EXIT
sh "$(dirname "$0")/debian_files.sh" python3-pip-whl usr/share/python-wheels "$wheels" || {
    echo "no pip: see above, or install python3-venv (as root: apt-get install python3-venv), then make again" >&2
    exit 1
}
set -- "$wheels"/pip-*.whl
# The wheel is an importable archive: pip runs from it once, to install itself.
PYTHONPATH=$1 "$venv/bin/python" -m pip install -q --disable-pip-version-check --no-index "$1"
