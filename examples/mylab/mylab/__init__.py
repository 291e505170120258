"""Linear attention on inputs that are signs."""
