"""The processes of a rehearsal and the supervisor that owns them."""
