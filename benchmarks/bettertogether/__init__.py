"""BetterTogether's figures and tables beside what the paper prints."""
