"""Reading other people's files: bounded, strict, every problem with its line."""
