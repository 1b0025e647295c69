"""The agents that come with nlsom: one file an agent, each named by entry point."""
