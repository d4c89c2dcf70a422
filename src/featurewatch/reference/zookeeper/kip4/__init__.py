"""The server's part of KIP-4's draft: its requests, served by the node that is the controller."""
