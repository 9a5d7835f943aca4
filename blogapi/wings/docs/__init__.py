"""The OpenAPI description of the API, the page that shows it, and the metrics."""
