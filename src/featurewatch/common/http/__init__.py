"""What every HTTP port of the product has in common: TLS, logins, limits of clients, listening."""
