#!/bin/sh
# Installs torch and torchvision for machines without a GPU: the small CPU wheels of PyTorch's own index when it can be
# reached, else those that pip is configured to find, which may bring 5 GB of CUDA along.
# usage: torch.sh PYTHON
set -eu
python=$1
pins='torch==2.14.1 torchvision==0.29.1'

have=$("$python" -c 'import importlib.metadata as m; print(m.version("torch").split("+")[0], m.version("torchvision").split("+")[0])' 2>/dev/null || true)
[ "$have" = "2.14.1 0.29.1" ] && exit 0

# Short patience: where that index is blocked, the wait would be all there is.
# shellcheck disable=SC2086
"$python" -m pip install -q --disable-pip-version-check --retries 0 --timeout 10 \
    --index-url https://download.pytorch.org/whl/cpu $pins 2>/dev/null \
  || "$python" -m pip install -q --disable-pip-version-check $pins
