"""What the vision experts share: one runtime, the models, and how a question about a picture is read."""
