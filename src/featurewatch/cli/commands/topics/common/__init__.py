"""What the commands about topics share: their options, and what they print."""
