"""The log writer: groups, rivals, failures."""
