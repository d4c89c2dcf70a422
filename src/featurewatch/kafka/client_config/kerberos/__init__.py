"""The login by Kerberos (SASL GSSAPI): its properties, tickets and messages."""
