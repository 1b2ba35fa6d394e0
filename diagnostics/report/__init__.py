"""What the reader gets: findings merged into a report, and the report on a terminal, as JSON or as HTML."""
