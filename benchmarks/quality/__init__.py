"""How good plans are after how much tuning."""
