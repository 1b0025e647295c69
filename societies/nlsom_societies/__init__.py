"""The societies that come with nlsom, one YAML file each, and their prompts."""
