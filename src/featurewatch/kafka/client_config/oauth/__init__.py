"""Access tokens for SASL OAUTHBEARER: read, fetched from where the properties say, and renewed."""
