"""What users ask: fields of a question, their values as text, and which of them belong together."""
