"""Every figure on a page as a file."""
