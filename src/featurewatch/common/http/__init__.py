"""The common parts of every HTTP port: TLS, logins, limits of clients, listening."""
