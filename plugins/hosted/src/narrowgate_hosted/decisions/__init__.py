"""Decision services: System One and its family, OpenAI Decisions, OpenRouter."""
