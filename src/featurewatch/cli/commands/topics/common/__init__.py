"""What the commands about topics share: their options, their client, what they print."""
