"""Pages and parts of pages that are made from tables, from records and from the library itself."""
