"""A server for analysts who must never hold the data: tokens, routes, and the order in which a request is checked."""
