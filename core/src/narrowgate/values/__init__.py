"""The value types that pass between the rooms: frozen, without behaviour beyond their own checks. Imports nothing above."""
