"""The console's verbs on the command line; each module holds one group of them."""
