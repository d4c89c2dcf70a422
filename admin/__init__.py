"""Changes to real clusters, which only a person's command makes."""
