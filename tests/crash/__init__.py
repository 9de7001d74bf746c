"""The service dies or loses its database under load; nothing acknowledged is lost or doubled."""
