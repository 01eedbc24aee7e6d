"""How exact kernels and plans in lower precision are."""
