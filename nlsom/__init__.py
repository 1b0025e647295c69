"""Natural-language societies of mind."""
