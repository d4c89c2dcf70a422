"""A client of KIP-4's draft: the administrative requests as the document has them."""
