"""The metadata quorum of a cluster: who votes, who follows, and what it can lose."""
