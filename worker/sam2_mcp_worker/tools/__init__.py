"""What an agent may call: argument and result models, descriptions, annotations. No logic lives here."""
