"""Sign-in to the page by OpenID Connect: the authorization code flow with PKCE."""
