"""What becomes of the report when a process ends without telling Python."""
