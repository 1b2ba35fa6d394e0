"""Scripts that make files of the library from their sources; nothing at run time imports them."""
