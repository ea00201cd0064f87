"""`python -m tests.bench.ocr`."""

import sys

from tests.bench.ocr.run import main

sys.exit(main())
