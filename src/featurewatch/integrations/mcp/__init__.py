"""Tools for assistants (Model Context Protocol), which read the page's HTTP API only."""
