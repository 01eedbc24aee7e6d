"""How engines do where shapes change."""
