"""The societies that come with nlsom, one YAML file each, and the prompts they use."""
