"""Programs of users, which type checkers see in their strictest mode."""
