"""How accurate trained networks stay in lower precision."""
