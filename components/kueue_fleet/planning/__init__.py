"""What was, and what would have been cheaper: recorded jobs once more, and the search for another fleet."""
