"""`make conformance`: every recorded trace, on both stores."""

import sys

from tests.conformance.relay import main

sys.exit(main())
