"""`python -m hydra_core`: the console's verbs without a browser."""

import sys

from hydra_core.cli.main import main

sys.exit(main())
