"""How engines share a machine with busy processes."""
