"""Makes the book: notebooks are run, pages put together, and Jupyter Book renders the site."""
