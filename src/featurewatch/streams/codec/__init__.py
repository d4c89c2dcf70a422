"""Events and outputs as messages: JSON values, CloudEvents headers."""
