"""Parts that the commands about topics share: their options and output."""
