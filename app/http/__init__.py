"""The HTTP edge: routes, problems, tokens' roles, the OpenAPI document."""
